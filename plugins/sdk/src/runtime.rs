//! What std would bring: an allocator and a panic handler that tells the host before it traps.

use core::panic::PanicInfo;

use crate::log::Level;

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    // Without formatting machinery where possible: it is most of a small plugin's size.
    let text = info.message().as_str().unwrap_or("panicked");
    match info.location() {
        Some(at) => crate::log::write(Level::Error, format_args!("{text} at {}:{}", at.file(), at.line())),
        None => crate::log::write(Level::Error, format_args!("{text}")),
    }
    core::arch::wasm32::unreachable()
}
