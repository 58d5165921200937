// Read strictly and replaced as a whole; nothing of it is taken for granted when it is damaged.
#include "cli/control_process/anchor_file.hpp"
#include <glove/sys/clock.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/user_directories.hpp>
#include <glove/wire/fields.hpp>

namespace glove::cli {

namespace {

using control::receipt_anchor;

constexpr std::size_t most_bytes = 4096;

struct kept_anchor {
    std::uint8_t schema_version = 1;
    receipt_anchor anchor;
};
constexpr auto anchor_fields =
    wire::table(wire::row<&receipt_anchor::key_id, wire::hex64>("key_id"),
                wire::row<&receipt_anchor::sequence, wire::integer{}>("sequence"),
                wire::row<&receipt_anchor::head_hmac, wire::hex64>("head_hmac"));
constexpr auto kept_fields =
    wire::table(wire::row<&kept_anchor::schema_version, wire::integer{1, 1}>("schema_version"),
                wire::row<&kept_anchor::anchor, wire::record<anchor_fields>{}>("anchor"));

} // namespace

auto default_anchor_file() -> result<std::string> {
    GLOVE_TRY(const auto state, sys::state_directory());
    return state + "/receipts.anchor";
}

auto read_anchor(const std::string& file) -> result<std::optional<receipt_anchor>> {
    const auto text = sys::read_private_file(file, most_bytes);
    if (!text && text.error().code == errc::not_found) return std::nullopt;
    if (!text) return std::unexpected(text.error());
    auto read = wire::decode_text(*text, kept_fields);
    if (read) return std::optional{std::move(read->anchor)};
    return fail(errc::corrupt, "anchor.file", file + ": " + read.error().detail,
                "remove it, and verify the receipts from the first one on");
}

auto write_anchor(const std::string& file, const receipt_anchor& what) -> result<> {
    GLOVE_TRY(const auto path, sys::absolute(file));
    const auto name = path.substr(path.rfind('/') + 1);
    GLOVE_TRY(const auto directory, sys::make_private_directory(sys::parent_of(path)));
    GLOVE_TRY(const auto text, wire::encode(kept_anchor{1, what}, kept_fields));
    return sys::replace_durably(directory, name, text + "\n", sys::system_clock{}.wall().count());
}

auto anchor_json(const receipt_anchor& what) -> std::string {
    std::string out;
    wire::json::writer to{out};
    wire::write_object(to, what, anchor_fields);
    return out;
}

} // namespace glove::cli
