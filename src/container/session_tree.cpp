// Trees as they stand, and their digests.
#include "container/session_walk.hpp"
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/sys/trees.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::container {

auto read_tree(sys::fd_ref top, const tree_limits& limits, const tree_patience& patience)
    -> result<session_tree> {
    session_walk walk{limits, patience, hard_links::any};
    GLOVE_CHECK(walk.directory(top, nullptr));
    return std::move(walk).finish(true);
}

auto read_single(sys::fd_ref holder, const tree_limits& limits, const tree_patience& patience)
    -> result<session_tree> {
    GLOVE_TRY(const auto names, sys::names_in(holder, 2));
    for (const auto& name : names)
        if (name != single_file_name)
            return fail(errc::not_permitted, "tree.name",
                        in_quotes(name) + " lies beside the copy of a single file");
    session_walk walk{limits, patience, hard_links::any};
    if (!names.empty()) {
        GLOVE_TRY(const auto pin,
                  sys::open_beneath(holder, std::string{single_file_name}, O_PATH | O_NOFOLLOW));
        GLOVE_CHECK(walk.single(pin, nullptr));
    }
    return std::move(walk).finish(false);
}

auto tree_digest(std::span<const tree_row> rows) -> result<std::string> {
    constexpr std::size_t at_once = 64UL << 10U;
    GLOVE_TRY(auto digest, wire::sha256_stream::start());
    // The array is never whole in memory.
    std::string text{"["};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto& row = rows[i];
        if (i > 0) text += ',';
        wire::json::writer to{text};
        to.begin_object();
        to.member("path", row.path);
        to.member("content_digest", row.content_digest);
        to.member("bytes", row.bytes);
        to.member("mode", row.mode);
        to.member("directory", row.directory);
        to.end_object();
        if (text.size() < at_once) continue;
        GLOVE_CHECK(digest.update(text));
        text.clear();
    }
    text += ']';
    GLOVE_CHECK(digest.update(text));
    GLOVE_TRY(const auto whole, std::move(digest).finish());
    return wire::to_hex(whole);
}

} // namespace glove::container
