# What the project's people run. The hosted checks call the same targets.

# The fast lane: what every queue promises.
contract:
    cargo test --test all contract::

# All tests of the product that need only Rust and a PostgreSQL.
test:
    cargo test --workspace

# All tests of the product, on PostgreSQL 18 with everything fetched.
test-all:
    .ci/run tests

# Format, clippy, lock files, documentation.
check:
    .ci/run lint

# The programs outside the workspaces: transactions of other drivers, and what the benchmark compares the driver with.
peers:
    .ci/run peers

# Writes the golden files.
bless:
    TRUNKLINE_BLESS=1 cargo test --workspace -- the_schema_is the_reference_is the_page_is the_guide_s_table

# The older servers: the library on 14, as an ordinary role, and the contract on 15 to 17.
versions:
    .ci/run versions

# The Python package, from its README's first line to its types.
python:
    .ci/run python

# The tests of the benchmarks and of the torture tests.
lab:
    .ci/run lab

# Two minutes under faults, with each kind at least once.
torture:
    .ci/run torture

# A short benchmark beside River.
bench:
    cargo run --release --manifest-path lab/Cargo.toml -p trunkline-bench -- run --quick -p 'throughput/*/river' -p 'throughput/*/trunkline'

# What would be published.
packages:
    .ci/run packages

# The README's first command.
demo:
    .ci/run demo

# Both commands of the README, for an ordinary user who has only Rust.
readme:
    .ci/readme

# Brings every lock file up to its Cargo.toml, as after a change of the version.
lock:
    for lock in $(git ls-files '*Cargo.lock'); do cargo update --workspace --quiet --manifest-path "${lock%lock}toml" || exit; done

# Licences, sources and known vulnerabilities of all dependencies, of each lock file that ships or tests.
deny:
    cargo deny --workspace check
    cargo deny --manifest-path lab/Cargo.toml --workspace check
    cargo deny --manifest-path crates/python/Cargo.toml check

rust-version := `sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml`

# The oldest compiler that is supported, on what ships: `rust-version` in Cargo.toml.
msrv:
    rustup toolchain install {{rust-version}} --profile minimal --no-self-update
    cargo +{{rust-version}} check --workspace --locked
    cargo +{{rust-version}} check --workspace --locked --features trunkline-cli/relay,trunkline-relay/kafka,trunkline-relay/nats,trunkline-relay/rabbitmq,trunkline-relay/redis
    cargo +{{rust-version}} check --locked --manifest-path crates/python/Cargo.toml

# The guide as a site, in target/book, and the links of all pages.
book:
    .ci/run book

# What every change has to pass. The hosted checks run all other stages too.
ci:
    .ci/run
