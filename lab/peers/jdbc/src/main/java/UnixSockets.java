import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import javax.net.SocketFactory;

/** Connects pgJDBC to a Unix socket, for which it has no class. The argument is the socket's path. */
public final class UnixSockets extends SocketFactory {
    private final UnixDomainSocketAddress path;

    public UnixSockets(String path) {
        this.path = UnixDomainSocketAddress.of(path);
    }

    @Override
    public Socket createSocket() throws IOException {
        return new UnixSocket(SocketChannel.open(path));
    }

    @Override
    public Socket createSocket(String host, int port) throws IOException {
        return createSocket();
    }

    @Override
    public Socket createSocket(String host, int port, InetAddress from, int fromPort) throws IOException {
        return createSocket();
    }

    @Override
    public Socket createSocket(InetAddress host, int port) throws IOException {
        return createSocket();
    }

    @Override
    public Socket createSocket(InetAddress host, int port, InetAddress from, int fromPort) throws IOException {
        return createSocket();
    }

    /** A socket whose channel is already connected. It ignores the options of TCP. */
    private static final class UnixSocket extends Socket {
        private final SocketChannel channel;
        private final InputStream in;
        private final OutputStream out;

        UnixSocket(SocketChannel channel) {
            this.channel = channel;
            in = Channels.newInputStream(channel);
            out = Channels.newOutputStream(channel);
        }

        @Override
        public void connect(SocketAddress address, int timeout) {}

        @Override
        public boolean isConnected() {
            return channel.isConnected();
        }

        @Override
        public boolean isClosed() {
            return !channel.isOpen();
        }

        @Override
        public InputStream getInputStream() {
            return in;
        }

        @Override
        public OutputStream getOutputStream() {
            return out;
        }

        @Override
        public void setTcpNoDelay(boolean on) {}

        @Override
        public void setKeepAlive(boolean on) {}

        @Override
        public void setSoTimeout(int milliseconds) {}

        @Override
        public int getSoTimeout() {
            return 0;
        }

        @Override
        public void close() throws IOException {
            channel.close();
        }
    }
}
