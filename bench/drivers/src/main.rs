//! Ways of driving Postgres, side by side; `bench/peers/drivers` has three more.

fn main() -> Result<(), trunkline_drivers::Failure> {
    trunkline_drivers::main(trunkline_drivers::ways())
}
