//! Sets how the linker treats the symbols that Node provides.

fn main() {
    napi_build::setup();
}
