//! Compares ways of driving Postgres; `lab/peers/drivers` adds three more ways.

fn main() -> Result<(), trunkline_drivers::Failure> {
    trunkline_drivers::main(trunkline_drivers::ways())
}
