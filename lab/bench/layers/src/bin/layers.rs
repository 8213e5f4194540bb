//! Trunkline's own layers as contenders.

fn main() -> std::process::ExitCode {
    trunkline_layers::main(trunkline_contender::NO_MEASURE)
}
