// The one walk through a tree that others may change meanwhile: it reads, and where there is a
// place to copy to, it copies.
//
// Guarantees: a thing is pinned before it is opened, and what was opened must be what was pinned; a
// file and a directory must have the same facts after the work as before it.
#pragma once
#include <glove/container/session_tree.hpp>
#include <map>
#include <optional>
#include <utility>

namespace glove::container {

// Whether each name of a file must lie in the tree. Outside of it, somebody else's file could be
// meant.
enum class hard_links : std::uint8_t { any, inside_only };

class session_walk {
public:
    session_walk(const tree_limits& limits, const tree_patience& patience, hard_links links);

    // Everything in `from`, and with `to` a copy of it there. Both are open for reading.
    [[nodiscard]] auto directory(sys::fd_ref from, const sys::unique_fd* to) -> result<>;
    // A file, which is pinned.
    [[nodiscard]] auto single(sys::fd_ref pin, const sys::unique_fd* to) -> result<>;
    [[nodiscard]] auto finish(bool directory) && -> result<session_tree>;
    [[nodiscard]] auto go_on() const -> result<>;

private:
    struct here {
        sys::fd_ref from;
        const sys::unique_fd* to;
        std::string path; // "" of the top
        std::uint32_t depth;
    };
    struct names_of_file {
        std::string path;
        std::uint64_t links = 0, seen = 0;
    };

    [[nodiscard]] auto list(const here& at) -> result<std::vector<std::string>>;
    [[nodiscard]] auto all_in(const here& at, const sys::file_facts& before) -> result<>;
    [[nodiscard]] auto entry(const here& at, const std::string& name) -> result<>;
    [[nodiscard]] auto inner(const here& at, const std::string& name, std::string path,
                             sys::fd_ref pin, const sys::file_facts& facts) -> result<>;
    [[nodiscard]] auto file(const sys::unique_fd& from, const sys::file_facts& pinned,
                            std::string path, const sys::unique_fd* to, const std::string& name)
        -> result<>;
    [[nodiscard]] auto content(sys::fd_ref from, std::uint64_t size, const std::string& path,
                               const sys::unique_fd* to) -> result<std::string>;
    [[nodiscard]] auto count_link(const sys::file_facts& facts, const std::string& path)
        -> result<>;
    [[nodiscard]] auto add(tree_row row) -> result<>;

    tree_limits limits_;
    const tree_patience& patience_;
    hard_links links_;
    session_tree out_;
    std::uint64_t listed_ = 0, path_bytes_ = 0;
    std::map<std::pair<std::uint64_t, std::uint64_t>, names_of_file> linked_;
    std::string buffer_;
};

} // namespace glove::container
