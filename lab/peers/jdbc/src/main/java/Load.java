// Calls trunkline.enqueue through pgJDBC, for the benchmark. Each process is one caller.
// ../../../../README.md describes the protocol.

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

public final class Load {
    /** The calls before the clock starts, in which the JVM compiles what each call runs. */
    private static final int WARM_UP = 200;
    private static final int EMPTY_MESSAGE = "{\"at\":1763737000000000,\"pad\":\"\"}".length();
    private static final String LETTERS = letters();

    private final PreparedStatement enqueue;
    private final int payload = Integer.parseInt(System.getenv("BENCH_PAYLOAD"));
    private int sent;
    private final Map<Long, Integer> latencies = new TreeMap<>();

    private Load(Connection connection) throws SQLException {
        enqueue = connection.prepareStatement("select trunkline.enqueue(?, ?)");
    }

    public static void main(String[] words) {
        try (Connection connection = DriverManager.getConnection("jdbc:postgresql:" + env("PGDATABASE"), properties())) {
            run(new Load(connection), connection.getMetaData().getDriverVersion());
        } catch (Exception failure) {
            say("{\"error\":\"" + String.valueOf(failure).replaceAll("[^ -~]|[\"\\\\]", " ") + "\"}");
            System.exit(1);
        }
    }

    private static void run(Load load, String version) throws Exception {
        for (int call = 0; call < WARM_UP; call++) {
            load.send(micros());
        }
        say("{\"ready\":{\"version\":\"pgJDBC " + version + "\",\"runtime\":\"Java " + System.getProperty("java.version")
            + "\",\"settings\":\"a PreparedStatement in autocommit, prepareThreshold 1\"}}");
        System.in.read();
        double seconds = Double.parseDouble(env("BENCH_SECONDS"));
        load.measure(seconds, env("BENCH_RATE").equals("max") ? 0 : Double.parseDouble(env("BENCH_RATE")));
        say(load.latencies.entrySet().stream().map(entry -> "\"" + entry.getKey() + "\":" + entry.getValue())
            .collect(Collectors.joining(",", "{\"latency\":{", "}}")));
        say("{\"done\":{\"sent\":" + load.sent + ",\"received\":0,\"seconds\":" + seconds + "}}");
        System.in.transferTo(java.io.OutputStream.nullOutputStream());
    }

    /** Sends until the time is over, at the rate, or as fast as calls are answered if it is 0. */
    private void measure(double seconds, double rate) throws SQLException {
        long start = System.nanoTime();
        long startedAt = micros();
        long time = (long) (seconds * 1e9);
        while (true) {
            long due = rate > 0 ? (long) (sent / rate * 1e9) : System.nanoTime() - start;
            while (System.nanoTime() - start < Math.min(due, time)) {
                LockSupport.parkNanos(Math.min(due, time) - (System.nanoTime() - start));
            }
            long called = System.nanoTime();
            if (called - start >= time) {
                return;
            }
            send(startedAt + due / 1000);
            long answered = System.nanoTime();
            if (answered - start < time) {
                sent++;
                latencies.merge(threeDigits((answered - called) / 1000), 1, Integer::sum);
            }
        }
    }

    private void send(long at) throws SQLException {
        enqueue.setString(1, "bench");
        enqueue.setString(2, message(at));
        enqueue.executeQuery().close();
    }

    private String message(long at) {
        int need = Math.max(0, payload - EMPTY_MESSAGE);
        int from = ThreadLocalRandom.current().nextInt(LETTERS.length());
        StringBuilder text = new StringBuilder(payload).append("{\"at\":").append(at).append(",\"pad\":\"");
        while (need > 0) {
            int end = Math.min(LETTERS.length(), from + need);
            text.append(LETTERS, from, end);
            need -= end - from;
            from = 0;
        }
        return text.append("\"}").toString();
    }

    /** Returns letters at random, because repetition would be compressed. */
    private static String letters() {
        byte[] bytes = new byte[768 * 1024];
        ThreadLocalRandom.current().nextBytes(bytes);
        return java.util.Base64.getUrlEncoder().encodeToString(bytes);
    }

    private static Properties properties() {
        Properties all = new Properties();
        all.setProperty("user", env("PGUSER"));
        all.setProperty("password", env("PGPASSWORD"));
        all.setProperty("prepareThreshold", "1");
        String host = env("PGHOST");
        if (host.startsWith("/")) {
            all.setProperty("socketFactory", UnixSockets.class.getName());
            all.setProperty("socketFactoryArg", host + "/.s.PGSQL." + env("PGPORT"));
            all.setProperty("sslmode", "disable");
        } else {
            all.setProperty("PGHOST", host);
            all.setProperty("PGPORT", env("PGPORT"));
        }
        return all;
    }

    private static String env(String name) {
        return System.getenv(name);
    }

    private static long micros() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    private static long threeDigits(long micros) {
        long unit = 1;
        while (micros / unit >= 1000) {
            unit *= 10;
        }
        return micros / unit * unit;
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
