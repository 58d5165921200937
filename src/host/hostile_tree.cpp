// Measuring stays within its limits; deleting is that of `sys`, and told as a home's.
#include "host/hostile_tree.hpp"
#include "host/home_places.hpp"
#include <fcntl.h>
#include <sys/stat.h>
#include <vector>

namespace glove::host {

namespace {

constexpr std::size_t deepest_counted = 64; // one descriptor each

class counter {
public:
    explicit counter(std::uint64_t limit) : limit_{limit} {}

    void count(sys::fd_ref directory, std::size_t depth) {
        const auto all = each_name(directory, [&](const std::string& name) {
            if (out_.entries == limit_) {
                out_.counted_all = false;
                return false;
            }
            count_one(directory, name, depth);
            return true;
        });
        if (!all) out_.counted_all = false;
    }
    [[nodiscard]] auto result_of() const -> tree_size { return out_; }

private:
    void count_one(sys::fd_ref directory, const std::string& name, std::size_t depth) {
        ++out_.entries;
        struct ::stat found{};
        if (::fstatat(directory.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
            return; // gone since, or not to be looked at
        out_.bytes += static_cast<std::uint64_t>(found.st_blocks) * 512;
        if (!S_ISDIR(found.st_mode)) return;
        const auto inner = sys::open_beneath(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (inner && depth < deepest_counted) count(*inner, depth + 1);
        else out_.counted_all = false;
    }

    std::uint64_t limit_;
    tree_size out_;
};

} // namespace

auto measure_tree(sys::fd_ref top, std::uint64_t entry_limit) -> result<tree_size> {
    counter all{entry_limit};
    all.count(top, 0);
    return all.result_of();
}

auto remove_tree(sys::fd_ref holder, const std::string& name, const std::string& path) -> result<> {
    GLOVE_TRY(const auto top, sys::open_beneath(holder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (auto emptied = sys::empty_directory(top, path); !emptied) {
        emptied.error().step = "home.remove";
        return emptied;
    }
    if (::unlinkat(holder.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
        return fail_os("home.remove", errno, path);
    return {};
}

} // namespace glove::host
