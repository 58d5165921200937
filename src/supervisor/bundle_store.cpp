// Objects by digest. The descriptor is what is judged, read, hashed and later mounted.
#include <algorithm>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/supervisor/bundle_store.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/grammar.hpp>
#include <sys/stat.h>

namespace glove::supervisor {

namespace {

constexpr ::mode_t of_others = 077;

[[nodiscard]] auto refuse_root(errc code, const std::string& path, std::string_view why,
                               std::string remedy = {}) {
    return fail(code, "bundle.root", printable(path).append(" ").append(why), std::move(remedy));
}

[[nodiscard]] auto judge_root(const std::string& path, const sys::file_facts& facts) -> result<> {
    if (facts.identity.type == S_IFLNK)
        return refuse_root(errc::not_permitted, path, "is a symbolic link");
    if (facts.identity.type != S_IFDIR)
        return refuse_root(errc::not_permitted, path, "is not a directory");
    if (facts.owner != ::geteuid())
        return refuse_root(errc::not_permitted, path, "belongs to another user");
    if ((facts.permissions & of_others) != 0)
        return refuse_root(errc::not_permitted, path, "is open to other users",
                           "chmod 700 " + printable(path));
    return {};
}

[[nodiscard]] auto pin_root(const std::string& path) -> result<sys::unique_fd> {
    auto pin = sys::pin(path, sys::follow::never);
    if (!pin)
        return std::unexpected(error{.code = pin.error().code,
                                     .step = "bundle.root",
                                     .os = pin.error().os,
                                     .detail = printable(path) + " cannot be opened",
                                     .remedy = {}});
    return pin;
}

[[nodiscard]] auto target_of(const session_rules& rules, const library_projection& what)
    -> result<std::string> {
    const auto* destination = rules.find_destination(what.destination_alias);
    if (destination == nullptr)
        return fail(errc::not_permitted, "bundle.destination",
                    "projection " + what.projection_id + " is for " + what.destination_alias +
                        ", which is no destination of the policy");
    return destination->target_path + "/" + what.content_digest + ".json";
}

[[nodiscard]] auto check_alone(const std::vector<resolved_bundle>& before,
                               const library_projection& what, const std::string& target)
    -> result<> {
    for (const auto& other : before) {
        if (other.projection.projection_id == what.projection_id)
            return fail(errc::invalid_input, "bundle.repeated",
                        "projection " + what.projection_id + " appears twice");
        if (other.target_path == target)
            return fail(errc::conflict, "bundle.target",
                        "projections " + other.projection.projection_id + " and " +
                            what.projection_id + " have the same target");
    }
    return {};
}

} // namespace

auto bundle_store::open(const std::string& path) -> result<bundle_store> {
    if (!wire::conforms(wire::grammar::path, path))
        return refuse_root(errc::invalid_input, path, "is not an absolute path in normal form");
    GLOVE_TRY(auto root, pin_root(path));
    GLOVE_TRY(const auto facts, sys::inspect(root));
    GLOVE_CHECK(judge_root(path, facts));
    return bundle_store{path, std::move(root), facts.identity};
}

auto bundle_store::check_root() const -> result<> {
    GLOVE_TRY(const auto again, pin_root(path_));
    GLOVE_TRY(const auto facts, sys::inspect(again));
    if (!(facts.identity == identity_))
        return refuse_root(errc::conflict, path_, "is another directory than it was at the start",
                           "restart the service");
    return judge_root(path_, facts);
}

auto bundle_store::fetch(std::string_view digest, std::size_t limit) const
    -> result<pinned_object> {
    if (!wire::conforms(wire::grammar::hex64, digest))
        return fail(errc::invalid_input, "bundle.name",
                    "an object is named by 64 lower-case hexadecimal digits");
    GLOVE_CHECK(check_root());
    const auto name = std::string{digest} + ".json";
    auto found = sys::open_private_file(root_, name, std::min(limit, most_bundle_bytes));
    GLOVE_CHECK(check_root());
    if (!found) {
        auto why = std::move(found).error();
        why.step = "bundle.object";
        if (why.os == ENOENT) why.detail = name + " is not in the store";
        if (why.os == ELOOP) why.detail = name + " is a symbolic link";
        return std::unexpected(std::move(why));
    }
    GLOVE_TRY(const auto has, wire::sha256_hex(found->content));
    if (has != digest)
        return fail(errc::corrupt, "bundle.digest", name + " does not have the digest of its name");
    return pinned_object{std::string{digest}, std::move(found->file), found->facts,
                         std::move(found->content)};
}

auto check_unchanged(const pinned_object& object) -> result<> {
    const auto changed = [&] {
        return fail(errc::conflict, "bundle.changed",
                    object.digest + ".json changed after it was fetched",
                    "put the object into the store as a whole, by renaming a new file");
    };
    GLOVE_TRY(const auto before, sys::inspect(object.file));
    if (!(before == object.facts)) return changed();
    GLOVE_TRY(const auto again, sys::reopen(object.file, O_RDONLY));
    GLOVE_TRY(const auto content, sys::read_all(again, most_bundle_bytes));
    GLOVE_TRY(const auto after, sys::inspect(object.file));
    if (content != object.content || !(after == object.facts)) return changed();
    return {};
}

auto resolve_bundles(const bundle_store& store, const session_rules& rules,
                     std::span<const library_projection> projections)
    -> result<std::vector<resolved_bundle>> {
    std::vector<resolved_bundle> out;
    std::size_t left = most_bundle_bytes;
    for (const auto& each : projections) {
        GLOVE_TRY(auto target, target_of(rules, each));
        GLOVE_CHECK(check_alone(out, each, target));
        GLOVE_TRY(auto object, store.fetch(each.content_digest));
        if (object.content.size() > left)
            return fail(errc::limit_exceeded, "bundle.total",
                        "projection " + each.projection_id +
                            " makes the bundles of this launch larger than 16777216 bytes");
        left -= object.content.size();
        auto document = decode_bundle(object.content);
        if (!document) {
            auto why = std::move(document).error();
            why.detail = "projection " + each.projection_id + ": " + why.detail;
            return std::unexpected(std::move(why));
        }
        out.push_back({each, std::move(target), std::move(object), *std::move(document)});
    }
    return out;
}

} // namespace glove::supervisor
