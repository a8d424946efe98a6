//! Says the commit that the extension is built from.

fn main() {
    identity::print_commit();
    println!("cargo:rerun-if-changed=src");
}
