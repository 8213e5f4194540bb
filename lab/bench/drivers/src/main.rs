//! Ways of driving Postgres, side by side; `lab/peers/drivers` has three more.

fn main() -> Result<(), trunkline_drivers::Failure> {
    trunkline_drivers::main(trunkline_drivers::ways())
}
