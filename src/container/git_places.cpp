// Reads no more than a path can be long, from nothing but a regular file; lists within a bound.
#include "container/git_places.hpp"
#include <fcntl.h>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::size_t longest_pointer = 8192;

[[nodiscard]] auto is_absent(const error& what) noexcept -> bool {
    return what.os == ENOENT || what.os == ENOTDIR || what.os == ELOOP;
}

using failure_told = std::function<void(const error&, const std::string&)>;

class inner_search {
public:
    inner_search(sys::fd_ref root, std::size_t& names_left, const failure_told& failed)
        : root_{root}, names_left_{names_left}, failed_{failed} {}

    // Submodules may have names with slashes, so a directory may be one or hold some; with a
    // `depth` of 0 it holds none.
    void look(const std::string& directory, int depth) {
        const auto names = sys::list_names(root_, directory, sys::mounts::crossed);
        if (!names) return failed_(names.error(), directory);
        for (const auto& [name, type] : *names) {
            if (names_left_ == 0) return failed_(too_many(), directory);
            --names_left_;
            const auto inner = directory + "/" + name;
            if (type != S_IFDIR && (type != 0 || type_of(inner) != S_IFDIR)) continue;
            if (is_repository(inner)) out_.push_back(inner);
            else if (depth > 1) look(inner, depth - 1);
            else if (depth == 1) failed_(too_many(), inner);
        }
    }
    [[nodiscard]] auto found() && -> std::vector<std::string> { return std::move(out_); }

private:
    [[nodiscard]] static auto too_many() -> error {
        return fail(errc::limit_exceeded, "source.protect").error();
    }
    [[nodiscard]] auto type_of(const std::string& path) -> ::mode_t {
        const auto pin = sys::open_beneath(root_, path, O_PATH | O_NOFOLLOW, sys::mounts::crossed);
        const auto facts = pin ? sys::inspect(*pin) : std::unexpected(pin.error());
        if (facts) return facts->identity.type;
        if (!is_absent(facts.error())) failed_(facts.error(), path);
        return 0;
    }
    // The name of a submodule may have one of these words in it.
    [[nodiscard]] auto is_repository(const std::string& path) -> bool {
        if (type_of(path + "/HEAD") != 0) return true;
        const auto settings = type_of(path + "/config");
        if (settings != 0 && settings != S_IFDIR) return true;
        for (const auto* const name : {"/hooks", "/objects"})
            if (type_of(path + name) != 0 && type_of(path + name + "/HEAD") == 0) return true;
        return false;
    }

    sys::fd_ref root_;
    std::size_t& names_left_;
    const failure_told& failed_;
    std::vector<std::string> out_;
};

} // namespace

auto inner_repositories(sys::fd_ref root, const std::string& git, std::size_t& names_left,
                        const failure_told& failed) -> std::vector<std::string> {
    constexpr int longest_name = 8; // of a submodule, in directories
    const auto inside = git.empty() ? std::string{} : git + "/";
    inner_search search{root, names_left, failed};
    search.look(inside + "worktrees", 0);
    search.look(inside + "modules", longest_name);
    return std::move(search).found();
}

auto read_pointer(sys::fd_ref root, const std::string& path, std::string_view prefix)
    -> result<std::string> {
    const auto file = sys::open_beneath(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                                        sys::mounts::crossed);
    if (!file) {
        if (is_absent(file.error())) return std::string{};
        return std::unexpected(file.error());
    }
    GLOVE_TRY(const auto facts, sys::inspect(*file));
    if (facts.identity.type != S_IFREG || facts.size > longest_pointer) return std::string{};
    auto text = sys::read_all(*file, longest_pointer);
    if (!text || !text->starts_with(prefix)) return std::string{};
    text->erase(0, prefix.size());
    text->erase(text->find_last_not_of("\r\n") + 1);
    if (text->find('\0') != std::string::npos) return std::string{};
    return text;
}

} // namespace glove::container
