//! What tells build systems of an installed library: a file for `pkg-config`, and a package for CMake. Texts alone; nothing is
//! written here.
//!
//! The headers of C++ use threads, for which some systems want a flag, so both ask for it.

use std::path::Path;

use super::Library;

/// What a program needs besides, that is linked with the static library.
const STATIC_NEEDS: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl";

/// The files for `library` below `prefix`, by their paths there.
pub fn describe(prefix: &Path, library: &Library) -> [(String, String); 3] {
    let name = library.name;
    [
        (format!("lib/pkgconfig/{name}.pc"), pkg_config(prefix, library)),
        (format!("lib/cmake/{name}/{name}Config.cmake"), cmake(library)),
        (format!("lib/cmake/{name}/{name}ConfigVersion.cmake"), cmake_version(library)),
    ]
}

fn pkg_config(prefix: &Path, Library { name, version, .. }: &Library) -> String {
    format!(
        "prefix={}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: {name}\nDescription: Tamarack, a key-value store, with the C and C++ interfaces of LevelDB\n\
         Version: {version}\nCflags: -I${{includedir}} -pthread\nLibs: -L${{libdir}} -l{name} -pthread\n\
         Libs.private: {STATIC_NEEDS}\n",
        prefix.display()
    )
}

/// The package finds the prefix by its own place, so that a tree that was moved is found as well.
fn cmake(library: &Library) -> String {
    let Library { name, soname, .. } = library;
    format!(
        "# Tamarack, a key-value store, with the C and C++ interfaces of LevelDB, as {name}::{name}.\n\
         include(CMakeFindDependencyMacro)\n\
         find_dependency(Threads)\n\
         get_filename_component(_{name}_prefix \"${{CMAKE_CURRENT_LIST_DIR}}/../../..\" ABSOLUTE)\n\
         if(NOT TARGET {name}::{name})\n\
         \x20 add_library({name}::{name} SHARED IMPORTED)\n\
         \x20 set_target_properties({name}::{name} PROPERTIES\n\
         \x20   IMPORTED_LOCATION \"${{_{name}_prefix}}/lib/{}\"\n\
         \x20   IMPORTED_SONAME \"{soname}\"\n\
         \x20   INTERFACE_INCLUDE_DIRECTORIES \"${{_{name}_prefix}}/include\"\n\
         \x20   INTERFACE_LINK_LIBRARIES Threads::Threads)\n\
         endif()\n\
         unset(_{name}_prefix)\n",
        library.file()
    )
}

/// A version serves those who ask for the same or an earlier one of its series: that of its first number, or of its first two
/// while the first is zero.
fn cmake_version(Library { version, .. }: &Library) -> String {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("0"));
    let series = if major == "0" { format!("{major}.{minor}") } else { major.to_owned() };
    let following = match series.rsplit_once('.') {
        None => format!("{}", number(major) + 1),
        Some((first, second)) => format!("{first}.{}", number(second) + 1),
    };
    format!(
        "set(PACKAGE_VERSION \"{version}\")\n\
         set(PACKAGE_VERSION_COMPATIBLE FALSE)\n\
         if(NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION AND NOT PACKAGE_FIND_VERSION VERSION_LESS {series}\n\
         \x20  AND PACKAGE_FIND_VERSION VERSION_LESS {following})\n\
         \x20 set(PACKAGE_VERSION_COMPATIBLE TRUE)\n\
         endif()\n\
         if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n\
         \x20 set(PACKAGE_VERSION_EXACT TRUE)\n\
         endif()\n"
    )
}

fn number(text: &str) -> u64 {
    text.parse().expect("versions have numbers")
}

#[cfg(test)]
mod tests {
    use super::super::{LEVELDB, TAMARACK};
    use super::*;

    #[test]
    fn each_file_names_its_library_and_says_where_it_is() {
        let [(path, text), (cmake_path, cmake), (_, version)] = describe(Path::new("/a prefix"), &LEVELDB);
        assert_eq!(path, "lib/pkgconfig/leveldb.pc");
        assert!(text.starts_with("prefix=/a prefix\n") && text.contains("\nVersion: 1.23.0\n"), "{text}");
        assert!(text.contains("-lleveldb -pthread\n"), "{text}");
        assert_eq!(cmake_path, "lib/cmake/leveldb/leveldbConfig.cmake");
        assert!(cmake.contains("add_library(leveldb::leveldb SHARED IMPORTED)"), "{cmake}");
        assert!(
            cmake.contains("/lib/libleveldb.so.1.23.0\"\n") && cmake.contains("\"libleveldb.so.1d\"\n"),
            "{cmake}"
        );
        assert!(version.contains("VERSION_LESS 1\n") && version.contains("VERSION_LESS 2)"), "{version}");
    }

    #[test]
    fn while_the_first_number_is_zero_the_second_is_that_of_the_series() {
        let version = cmake_version(&Library { version: "0.7.3", ..TAMARACK });
        assert!(version.contains("VERSION_LESS 0.7\n") && version.contains("VERSION_LESS 0.8)"), "{version}");
    }
}
