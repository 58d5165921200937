// Reaches for files: to read, change, create, find or replace them, and to use up all room.
#include "attack.hpp"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace hostile {
namespace {

auto read(arguments with) -> result {
    const int file = ::open(with[0], O_RDONLY | O_CLOEXEC);
    if (file < 0) return denied();
    std::array<char, 4096> text{};
    const auto got = ::read(file, text.data(), text.size());
    return got < 0 ? denied() : worked({text.data(), static_cast<std::size_t>(got)});
}

auto list(arguments with) -> result {
    auto* const open = ::opendir(with[0]);
    if (open == nullptr) return denied();
    std::string names;
    while (const auto* const entry = ::readdir(open))
        if (entry->d_name[0] != '.') names += std::string{entry->d_name} + " ";
    return worked(names);
}

auto write(arguments with) -> result {
    const int file = ::open(with[0], O_WRONLY | O_CLOEXEC);
    if (file < 0) return denied();
    return judge(::write(file, "owned\n", 6));
}

auto open_for_writing(arguments with) -> result {
    return judge(::open(with[0], O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

auto lock(arguments with) -> result {
    const int file = ::open(with[0], O_RDONLY | O_CLOEXEC);
    if (file < 0) return untried("open");
    struct ::flock whole{
        .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
    return judge(::fcntl(file, F_SETLK, &whole));
}

auto lease(arguments with) -> result {
    const int file = ::open(with[0], O_RDONLY | O_CLOEXEC);
    if (file < 0) return untried("open");
    return judge(::fcntl(file, F_SETLEASE, F_WRLCK));
}

auto appear(arguments with) -> result {
    const auto made = judge(::open(with[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (made.what == verdict::worked) (void)::unlink(with[0]);
    return made;
}

auto create(arguments with) -> result {
    return judge(::open(with[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

auto find(arguments with) -> result {
    struct ::stat found{};
    return judge(::lstat(with[0], &found));
}

auto list_empty(arguments with) -> result {
    const auto seen = list(with);
    if (seen.what != verdict::worked) return seen;
    return seen.words.empty() ? denied("empty") : seen;
}

auto link(arguments with) -> result { return judge(::link(with[0], with[1])); }
auto rename(arguments with) -> result { return judge(::rename(with[0], with[1])); }
auto unlink(arguments with) -> result { return judge(::unlink(with[0])); }
auto make_directory(arguments with) -> result {
    const auto made = judge(::mkdir(with[0], 0755));
    if (made.what == verdict::worked) (void)::rmdir(with[0]);
    return made;
}

auto exchange(arguments with) -> result {
    constexpr unsigned swap = 2; // RENAME_EXCHANGE
    return judge(::renameat2(AT_FDCWD, with[0], AT_FDCWD, with[1], swap));
}

auto link_out_of_descriptor(arguments with) -> result {
    const int file = ::open(with[0], O_RDONLY | O_CLOEXEC);
    if (file < 0) return denied();
    const auto name = "/proc/self/fd/" + std::to_string(file);
    return judge(::linkat(AT_FDCWD, name.c_str(), AT_FDCWD, with[1], AT_SYMLINK_FOLLOW));
}

auto write_fifo(arguments with) -> result {
    const int fifo = ::open(with[0], O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fifo < 0) return denied();
    struct ::stat found{};
    if (::fstat(fifo, &found) != 0) return untried("fstat");
    if (!S_ISFIFO(found.st_mode)) return denied("not a fifo");
    return judge(::write(fifo, "owned\n", 6));
}

auto run(arguments with) -> result {
    const auto child = ::fork();
    if (child == 0) {
        std::vector<char*> words;
        for (const char* const word : with) words.push_back(const_cast<char*>(word));
        words.push_back(nullptr);
        ::execv(words[0], words.data());
        ::_exit(99);
    }
    int status = 0;
    if (::waitpid(child, &status, 0) != child) return untried("waitpid");
    return status == 0 ? worked() : denied("status " + std::to_string(WEXITSTATUS(status)));
}

// -- /proc ----------------------------------------------------------------------------------------

auto of_a_process(std::string_view name) -> bool {
    return name == "self" || name == "thread-self" ||
           (!name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos);
}

void walk(const std::string& directory, bool top, std::string& openable) {
    auto* const open = ::opendir(directory.c_str());
    if (open == nullptr) return;
    while (const auto* const entry = ::readdir(open)) {
        const std::string name{entry->d_name};
        if (name == "." || name == ".." || (top && of_a_process(name))) continue;
        const auto path = directory + "/" + name;
        struct ::stat found{};
        if (::lstat(path.c_str(), &found) != 0 || S_ISLNK(found.st_mode)) continue;
        if (::chmod(path.c_str(), found.st_mode & 07777) == 0) openable += path + "(chmod) ";
        if (S_ISDIR(found.st_mode)) walk(path, false, openable);
        else if (const int file = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
                 file >= 0) {
            openable += path + " ";
            (void)::close(file);
        }
    }
    (void)::closedir(open);
}

// Opens, and writes nothing; sets the modes that are there: harmless where it works.
auto kernel_files(arguments) -> result {
    std::string openable;
    walk("/proc", true, openable);
    return openable.empty() ? denied("none of them") : worked(openable);
}

auto kernel_memory_views(arguments) -> result {
    constexpr std::array views{"/proc/kcore", "/proc/kmsg", "/proc/keys", "/proc/timer_list",
                               "/proc/sched_debug"};
    std::string readable;
    for (const char* const view : views) {
        const int file = ::open(view, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        char byte = 0;
        if (file >= 0 && ::read(file, &byte, 1) == 1) readable += std::string{view} + " ";
    }
    return readable.empty() ? denied("none of them") : worked(readable);
}

// -- all the room there is ------------------------------------------------------------------------

auto writable_mounts() -> std::vector<std::string> {
    std::vector<std::string> out;
    std::ifstream mounts{"/proc/self/mountinfo"};
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream columns{line};
        std::string skip, place, options;
        columns >> skip >> skip >> skip >> skip >> place >> options;
        if (options.starts_with("rw")) out.push_back(place);
    }
    return out;
}

auto places(arguments with) -> std::vector<std::string> {
    if (with.empty()) return writable_mounts();
    return {with.begin(), with.end()};
}

auto fill(arguments with) -> result {
    const auto limit = std::stoull(with[0]);
    unsigned long long total = 0;
    const std::vector<char> block(1 << 20, 'x');
    std::vector<std::string> made; // all at once: the room is used up by all of them together
    for (const auto& place : places(with.subspan(1))) {
        const auto name = place + "/fill";
        const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0) continue;
        for (ssize_t put = 0; total <= limit; total += static_cast<std::size_t>(put)) {
            put = ::write(file, block.data(), block.size());
            if (put <= 0) break;
        }
        if (errno != ENOSPC && total <= limit) return untried(place + " " + std::to_string(errno));
        made.push_back(name);
    }
    for (const auto& name : made) (void)::unlink(name.c_str());
    return total > limit ? worked(std::to_string(total)) : denied(std::to_string(total));
}

auto fill_names(arguments with) -> result {
    const auto limit = std::stoull(with[0]);
    unsigned long long total = 0;
    for (const auto& place : places(with.subspan(1)))
        for (; total <= limit; ++total) {
            const auto name = place + "/n" + std::to_string(total);
            if (::mknod(name.c_str(), S_IFREG | 0600, 0) != 0) break;
        }
    return total > limit ? worked(std::to_string(total)) : denied(std::to_string(total));
}

// Prints the room of every writable file system together, an inode with the longest name
// taken as 1.5 KiB.
auto unbounded_room(arguments with) -> result {
    const auto limit = std::stoull(with[0]);
    unsigned long long total = 0;
    std::vector<::dev_t> seen;
    for (const auto& place : places(with.subspan(1))) {
        struct ::stat at{};
        struct ::statfs room{};
        if (::stat(place.c_str(), &at) != 0 || ::statfs(place.c_str(), &room) != 0)
            return untried(place);
        if (::access((place + "/.").c_str(), W_OK) != 0) continue;
        if (std::ranges::count(seen, at.st_dev) != 0) continue;
        seen.push_back(at.st_dev);
        constexpr long proc_magic = 0x9fa0, devpts_magic = 0x1cd1; // hold no bytes of anybody
        if (room.f_type == proc_magic || room.f_type == devpts_magic) continue;
        if (room.f_blocks == 0 || room.f_files == 0) return worked(place + " has no bound");
        total +=
            room.f_blocks * static_cast<unsigned long long>(room.f_bsize) + room.f_files * 1536;
    }
    return total > limit ? worked(std::to_string(total)) : denied(std::to_string(total));
}

constexpr std::array attacks{
    attack{"read PATH", "read a file", read},
    attack{"list DIR", "list a directory", list},
    attack{"list_something DIR", "find anything in a directory", list_empty},
    attack{"write PATH", "write to an existing file", write},
    attack{"open_for_writing PATH", "be able to write to an existing file", open_for_writing},
    attack{"lock PATH", "lock a file", lock},
    attack{"lease PATH", "have whoever opens a file wait", lease},
    attack{"create PATH", "make a file", create},
    attack{"appear PATH", "make a file for a moment", appear},
    attack{"find PATH", "learn that a name exists", find},
    attack{"link FROM TO", "make a hard link", link},
    attack{"link_descriptor FROM TO", "link a file out of its descriptor", link_out_of_descriptor},
    attack{"rename FROM TO", "rename", rename},
    attack{"exchange A B", "swap two names", exchange},
    attack{"unlink PATH", "remove a name", unlink},
    attack{"make_directory PATH", "make a directory", make_directory},
    attack{"write_fifo PATH", "reach whoever reads a FIFO", write_fifo},
    attack{"run PROGRAM", "execute a program", run},
    attack{"kernel_files", "open or chmod the kernel's own files of /proc", kernel_files},
    attack{"kernel_memory_views", "read memory, keys and timers in /proc", kernel_memory_views},
    attack{"fill LIMIT", "write more than LIMIT bytes", fill},
    attack{"fill_names LIMIT", "make more than LIMIT files", fill_names},
    attack{"unbounded_room LIMIT", "find more room than LIMIT", unbounded_room},
};

} // namespace

auto file_attacks() -> std::span<const attack> { return attacks; }

} // namespace hostile
