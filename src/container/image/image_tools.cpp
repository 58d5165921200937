// What is in an image is the session's work, so it is checked in a perimeter; what is made of zeros
// is not.
#include "container/image/image_tools.hpp"
#include "container/image/image_protocol.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <glove/sys/spawn.hpp>
#include <initializer_list>
#include <iterator>
#include <unistd.h>

namespace glove::container {

namespace {

constexpr std::chrono::minutes patience_with_programs{5};

// e2fsck(8): the bits of its exit status.
constexpr int corrected = 1 | 2, uncorrected = 4, operational = 8;

[[nodiscard]] auto find_tool(const char* name) -> std::string {
    for (const auto* const directory : {"/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"})
        if (auto path = std::string{directory} + name; ::access(path.c_str(), X_OK) == 0)
            return path;
    return {};
}

struct means_row {
    const char* node;
    const char* without; // what to do when there is no such node
};
constexpr means_row rows[] = {{"/dev/loop-control", "as root run: modprobe loop"},
                              {"/dev/fuse", "as root run: modprobe fuse"}};
static_assert(std::size(rows) == static_cast<std::size_t>(image_means::fuse) + 1);

// Before anything is started for it.
[[nodiscard]] auto check_node(image_means means) -> result<> {
    const auto& row = rows[static_cast<std::size_t>(means)];
    if (::access(row.node, R_OK | W_OK) == 0) return {};
    auto problem = fail_os("files.means", errno, row.node);
    problem.error().code = errc::unsupported;
    if (problem.error().os == ENOENT) problem.error().remedy = row.without;
    return problem;
}

[[nodiscard]] auto missing(const char* name, const char* package) {
    return fail(errc::unsupported, "files.means",
                std::string{name} + " is not there, so no retained file system can be made",
                std::string{"install the package "} + package);
}

// A file for every block of the small ones; a copy has at most 100 000.
[[nodiscard]] auto inodes_for(std::uint64_t bytes) -> std::uint64_t {
    constexpr std::uint64_t of_a_copy = 131072;
    return std::max({std::min(bytes / 4096, of_a_copy), bytes / 16384, std::uint64_t{16}});
}

// All of it is said here, whatever the machine's mke2fs.conf says. A journal is for the kernel:
// fuse2fs writes none.
[[nodiscard]] auto format_arguments(image_means means, std::uint64_t bytes)
    -> std::vector<std::string> {
    std::string features =
        "none,ext_attr,dir_index,filetype,sparse_super,large_file,extent,flex_bg,"
        "huge_file,dir_nlink,extra_isize,metadata_csum";
    if (means == image_means::loop) features += ",has_journal";
    // As the service sees itself, which is as the session's user will be seen.
    const auto owner = std::to_string(::geteuid()) + ":" + std::to_string(::getegid());
    return {"mke2fs",
            "-q",
            "-F",
            "-t",
            "ext4",
            "-b",
            "4096",
            "-I",
            "256",
            "-m",
            "0",
            "-N",
            std::to_string(inodes_for(bytes)),
            "-O",
            std::move(features),
            "-E",
            "root_owner=" + owner + ",lazy_itable_init=0,lazy_journal_init=0,nodiscard",
            "-d",
            "/proc/self/fd/4",
            "/proc/self/fd/3"};
}

[[nodiscard]] auto after(std::string words) -> std::string {
    return words.empty() ? words : ": " + std::move(words);
}

} // namespace

auto find_tools(image_means means, const std::string& helper) -> result<image_tools> {
    image_tools out{.make = find_tool("mke2fs"),
                    .check = find_tool("e2fsck"),
                    .serve = find_tool("fuse2fs"),
                    .helper = helper};
    if (out.make.empty()) return missing("mke2fs", "e2fsprogs");
    if (out.check.empty()) return missing("e2fsck", "e2fsprogs");
    if (means == image_means::fuse && out.serve.empty()) return missing("fuse2fs", "fuse2fs");
    GLOVE_CHECK(check_node(means));
    if (out.helper.empty()) {
        GLOVE_TRY(out.helper, sys::find_own_program("glove-image", "files.means"));
    }
    return out;
}

auto format_image(const image_tools& with, image_means means, sys::fd_ref image,
                  std::uint64_t bytes, sys::fd_ref content) -> result<> {
    GLOVE_TRY(const auto words, make_pipe("files.format"));
    const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    if (!nothing) return fail_os("files.format", errno, "/dev/null");
    auto started = sys::spawn(
        {.program = with.make,
         .arguments = format_arguments(means, bytes),
         .environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"},
         .descriptors =
             {{0, nothing}, {1, words.write}, {2, words.write}, {3, image}, {4, content}},
         .own_session = true});
    if (!started) return fail_os("files.format", started.error().os, with.make);
    const sys::system_clock time;
    GLOVE_TRY(const int status,
              await_end(*started, time, time.monotonic() + patience_with_programs, "files.format"));
    if (status == 0) return {};
    return fail(errc::io, "files.format",
                with.make + " ended with " + std::to_string(status) +
                    after(words_from(words.read)));
}

auto check_image(const image_tools& with, sys::fd_ref image, std::optional<sys::fd_ref> entry,
                 const std::stop_token& stop) -> result<image_state> {
    GLOVE_TRY(auto process, image_process::start({.name = image_check,
                                                  .helper = with.helper,
                                                  .tool = with.check,
                                                  .image = image,
                                                  .entry = entry}));
    const sys::system_clock time;
    GLOVE_TRY(const int status,
              process.wait(time, time.monotonic() + patience_with_programs, stop));
    const auto said = "e2fsck ended with " + std::to_string(status) + after(process.words());
    if (status == image_killed) return fail(errc::corrupt, "files.quarantined", said);
    if (status > (corrected | uncorrected | operational))
        return fail(errc::io, "files.check", said);
    if ((status & (uncorrected | operational)) != 0)
        return fail(errc::corrupt, "files.quarantined", said);
    return (status & corrected) != 0 ? image_state::repaired : image_state::good;
}

} // namespace glove::container
