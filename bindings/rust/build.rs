//! Finds libringside by pkg-config. A copy in a build folder is found with
//! PKG_CONFIG_PATH=build/meson-uninstalled.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let asked = Command::new("pkg-config").args(["--libs-only-L", "ringside"]).output();
    let found = match asked {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => panic!("pkg-config does not find ringside: install libringside, or set PKG_CONFIG_PATH"),
    };
    for folder in found.split_whitespace().filter_map(|word| word.strip_prefix("-L")) {
        println!("cargo:rustc-link-search=native={folder}");
    }
    println!("cargo:rustc-link-lib=dylib=ringside");
}
