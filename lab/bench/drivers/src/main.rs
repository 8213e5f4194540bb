//! Compares ways of driving Postgres. `lab/peers/drivers` adds six ways, which use three other
//! drivers.

fn main() -> Result<(), trunkline_drivers::Failure> {
    trunkline_drivers::main(trunkline_drivers::ways())
}
