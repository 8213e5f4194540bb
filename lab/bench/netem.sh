#!/usr/bin/env bash
# Runs a command behind a worse network. Its TCP connections use the loopback device of their own
# network namespace. The kernel delays, loses, reorders or limits their packets (tc-netem(8)), as
# real links do. The delay proxy (`trunkline delay-proxy`) delays only whole reads and writes; here
# the kernel's retransmissions, Nagle's algorithm and congestion control take part.
#
#   lab/bench/netem.sh "delay 5ms" cargo run --release --manifest-path lab/Cargo.toml -p trunkline-bench -- run --tcp -p '^latency/*/trunkline$'
#   lab/bench/netem.sh "delay 2ms 1ms loss 0.5%" cargo run --release --manifest-path lab/Cargo.toml -p trunkline-bench -- run --tcp -p distance
#
# Each packet of either direction passes the device once, so a round trip takes twice the delay.
# Unix sockets are not affected: `--tcp` avoids the private server's socket. The rows show the
# network in their column `connection`.
set -euo pipefail

fail() { echo "netem.sh: $1" >&2; exit 1; }

[ $# -ge 2 ] || fail 'usage: lab/bench/netem.sh "delay 5ms loss 0.1%" COMMAND…'
network=$1
shift
[ "$(uname -s)" = Linux ] || fail "only Linux has tc-netem; the delay proxy works everywhere: trunkline delay-proxy --help"
for tool in unshare ip tc; do
    command -v "$tool" >/dev/null || fail "$tool is missing: install util-linux and iproute2"
done

# Root creates the namespace directly. Other users create it with a user namespace, in which they
# keep their user id (PostgreSQL does not run as root).
if [ "$(id -u)" = 0 ]; then alone=(unshare --net); else alone=(unshare --user --map-current-user --keep-caps --net); fi
"${alone[@]}" true 2>/dev/null ||
    fail "this system permits no network namespace: run it as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone, or user.max_user_namespaces)"
# shellcheck disable=SC2086 # the network is words of tc's own
"${alone[@]}" sh -c 'ip link set lo up && tc qdisc add dev lo root netem '"$network" >/dev/null 2>&1 || {
    "${alone[@]}" sh -c 'ip link set lo up && tc qdisc add dev lo root netem delay 1ms' >/dev/null 2>&1 ||
        fail "this kernel has no netem queueing discipline: load it (modprobe sch_netem), or use another kernel; the delay proxy needs none: trunkline delay-proxy --help"
    fail "tc does not understand \"$network\": tc-netem(8) has the words"
}
export BENCH_NETWORK="netem $network"
exec "${alone[@]}" sh -c 'ip link set lo up && tc qdisc add dev lo root netem '"$network"' && exec "$@"' sh "$@"
