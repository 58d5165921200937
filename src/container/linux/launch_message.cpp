// Integers are little endian; a text is its length and its bytes; a list is its count and its
// items.
#include "container/linux/launch_message.hpp"
#include "container/linux/launch_parts.hpp"
#include "container/tree.hpp"
#include <algorithm>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::uint32_t version = 1;
constexpr std::size_t longest_text = 1UL << 20;
constexpr std::size_t most_items = 64UL << 10; // of one list

class writer {
public:
    void number(std::uint64_t value, unsigned size) {
        for (unsigned i = 0; i < size; ++i) out_ += static_cast<char>(value >> (8 * i) & 0xffU);
    }
    void u8(std::uint64_t value) { number(value, 1); }
    void u16(std::uint64_t value) { number(value, 2); }
    void u32(std::uint64_t value) { number(value, 4); }
    void u64(std::uint64_t value) { number(value, 8); }
    void text(std::string_view bytes) {
        u32(bytes.size());
        out_ += bytes;
    }
    void list(const std::vector<std::string>& texts) {
        u32(texts.size());
        for (const auto& one : texts) text(one);
    }
    [[nodiscard]] auto take() -> std::string { return std::move(out_); }

private:
    std::string out_;
};

// After the first thing that is wrong, everything reads as nothing.
class reader {
public:
    explicit reader(std::string_view bytes) : rest_{bytes} {}
    [[nodiscard]] auto number(unsigned size) -> std::uint64_t {
        std::uint64_t value = 0;
        if (rest_.size() < size) return wrong();
        for (unsigned i = 0; i < size; ++i)
            value |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
        rest_.remove_prefix(size);
        return value;
    }
    // At most `most`.
    [[nodiscard]] auto upto(std::uint64_t most, unsigned size) -> std::uint64_t {
        const auto value = number(size);
        return value <= most ? value : wrong();
    }
    [[nodiscard]] auto boolean() -> bool { return upto(1, 1) == 1; }
    [[nodiscard]] auto u16() -> std::uint16_t { return static_cast<std::uint16_t>(number(2)); }
    [[nodiscard]] auto u32() -> std::uint32_t { return static_cast<std::uint32_t>(number(4)); }
    // No text that the kernel takes holds a zero byte.
    [[nodiscard]] auto text() -> std::string {
        const auto size = upto(longest_text, 4);
        if (rest_.size() < size) return wrong(), std::string{};
        std::string out{rest_.substr(0, size)};
        rest_.remove_prefix(size);
        if (out.contains('\0')) return wrong(), std::string{};
        return out;
    }
    [[nodiscard]] auto count() -> std::size_t { return upto(most_items, 4); }
    [[nodiscard]] auto list() -> std::vector<std::string> {
        std::vector<std::string> out;
        for (auto left = count(); left > 0 && good_; --left) out.push_back(text());
        return out;
    }
    void refuse() { (void)wrong(); }
    [[nodiscard]] auto good() const -> bool { return good_; }
    [[nodiscard]] auto done() const -> bool { return good_ && rest_.empty(); }

private:
    auto wrong() -> std::uint64_t {
        good_ = false;
        rest_ = {};
        return 0;
    }
    std::string_view rest_;
    bool good_ = true;
};

void write_bridge(writer& out, const std::optional<bridge_plan>& bridge) {
    out.u8(bridge ? 1 : 0);
    if (!bridge) return;
    out.u32(bridge->rules.all().size());
    for (const auto& rule : bridge->rules.all()) out.text(rule.text);
    out.u32(bridge->published.size());
    for (const auto port : bridge->published) out.u16(port);
    out.u32(bridge->connections);
}

// A rule has one text.
[[nodiscard]] auto are_canonical(const net::egress_rules& rules,
                                 const std::vector<std::string>& texts) -> bool {
    return std::ranges::equal(rules.all(), texts, {}, &net::egress_rule::text);
}

// The names and listeners follow from the rules.
[[nodiscard]] auto read_bridge(reader& in, network_tier tier)
    -> result<std::optional<bridge_plan>> {
    if (!in.boolean()) return std::nullopt;
    egress_wish wish;
    wish.allow = in.list();
    for (auto left = in.count(); left > 0 && in.good(); --left) wish.publish.push_back(in.u16());
    wish.connections = in.u32();
    if (!in.good()) return std::nullopt;
    GLOVE_TRY(auto out, plan_bridge(wish, tier));
    if (!out || !are_canonical(out->rules, wish.allow)) in.refuse();
    return out;
}

void write_entry(writer& out, const tree_entry& entry) {
    out.text(entry.path);
    out.u8(static_cast<std::uint64_t>(entry.kind));
    out.u8(static_cast<std::uint64_t>(entry.origin));
    out.u8(static_cast<std::uint64_t>(entry.mode));
    out.u32(entry.permissions);
    out.text(entry.text);
    out.u64(entry.identity.device);
    out.u64(entry.identity.inode);
    out.u32(entry.identity.type);
    out.u8(entry.kind == entry_kind::mounted && entry.pin ? 1 : 0);
}

[[nodiscard]] auto read_entry(reader& in, bool& has_mount) -> tree_entry {
    tree_entry out{.path = in.text()};
    out.kind = static_cast<entry_kind>(in.upto(static_cast<unsigned>(entry_kind::mounted), 1));
    out.origin = static_cast<origin>(in.upto(static_cast<unsigned>(origin::kept), 1));
    out.mode = static_cast<access>(in.upto(static_cast<unsigned>(access::write), 1));
    out.permissions = static_cast<::mode_t>(in.upto(07777, 4));
    out.text = in.text();
    out.identity.device = in.number(8);
    out.identity.inode = in.number(8);
    out.identity.type = static_cast<::mode_t>(in.upto(S_IFMT, 4));
    has_mount = in.boolean();
    if (!sys::is_normal_absolute(out.path) || out.path == "/" ||
        (has_mount && out.kind != entry_kind::mounted))
        in.refuse();
    return out;
}

// A parent comes before what it holds, and no path twice: what init does relies on it.
[[nodiscard]] auto is_in_order(const std::vector<tree_entry>& tree) -> bool {
    return std::ranges::adjacent_find(tree, [](const auto& a, const auto& b) {
               return !path_order{}(a.path, b.path);
           }) == tree.end();
}

void read_tree(reader& in, launch_message& out) {
    for (auto left = in.count(); left > 0 && in.good(); --left) {
        bool has_mount = false;
        out.plan.tree.push_back(read_entry(in, has_mount));
        out.has_mount.push_back(has_mount);
    }
    if (!is_in_order(out.plan.tree)) in.refuse();
}

[[nodiscard]] auto refuse(errc code, std::string why, std::string remedy = {}) {
    return fail(code, "launcher.plan", std::move(why), std::move(remedy));
}

} // namespace

auto encode_launch(const plan& of, std::uint16_t rows, std::uint16_t columns)
    -> result<std::string> {
    if (!of.scratch_mount || !of.listeners.empty())
        return refuse(errc::wrong_state, "this is no plan of a session");
    writer out;
    out.u32(version);
    out.u16(rows);
    out.u16(columns);
    for (const auto id : {of.user.uid, of.user.gid, of.user.outer_uid(), of.user.outer_gid()})
        out.u32(id);
    out.u8(static_cast<std::uint64_t>(of.network));
    out.list(of.argv);
    out.list(of.programs);
    out.list(of.environment);
    out.text(of.work_directory);
    write_bridge(out, of.bridge);
    out.u32(of.tree.size());
    std::size_t mounts = 2; // scratch and bridge
    for (const auto& entry : of.tree) {
        write_entry(out, entry);
        if (entry.pin && entry.kind == entry_kind::mounted) ++mounts;
    }
    auto bytes = out.take();
    if (bytes.size() > longest_launch_message)
        return refuse(errc::limit_exceeded,
                      "the command, its environment and the places of the session take " +
                          std::to_string(bytes.size()) + " bytes, and there may be " +
                          std::to_string(longest_launch_message),
                      "name fewer paths, or put long values into a file that is granted");
    if (mounts > most_launch_descriptors)
        return refuse(errc::limit_exceeded, "the session has more mounts than a launch can take",
                      "grant fewer paths");
    return bytes;
}

auto decode_launch(std::string_view bytes) -> result<launch_message> {
    launch_message out;
    reader in{bytes.substr(0, longest_launch_message + 1)};
    if (bytes.size() > longest_launch_message || in.u32() != version) in.refuse();
    out.rows = in.u16();
    out.columns = in.u16();
    auto& plan = out.plan;
    plan.user.uid = in.u32();
    plan.user.gid = in.u32();
    plan.user.outside_uid = in.u32();
    plan.user.outside_gid = in.u32();
    plan.network =
        static_cast<network_tier>(in.upto(static_cast<unsigned>(network_tier::sealed), 1));
    plan.argv = in.list();
    plan.programs = in.list();
    plan.environment = in.list();
    plan.work_directory = in.text();
    GLOVE_TRY(plan.bridge, read_bridge(in, plan.network));
    read_tree(in, out);
    if (plan.argv.empty() || plan.programs.empty() || plan.work_directory.empty()) in.refuse();
    if (!in.done()) return refuse(errc::corrupt, "what was sent to be launched is no plan");
    return out;
}

auto encode_refusal(const error& problem) -> std::string {
    writer out;
    out.u8(static_cast<std::uint64_t>(problem.code));
    out.u32(static_cast<std::uint32_t>(problem.os));
    out.text(problem.step);
    constexpr std::size_t most = longest_refusal / 4;
    out.text(std::string_view{problem.detail}.substr(0, most));
    out.text(std::string_view{problem.remedy}.substr(0, most));
    return out.take();
}

auto decode_refusal(std::string_view bytes) -> error {
    reader in{bytes};
    error out;
    out.code = static_cast<errc>(in.upto(static_cast<unsigned>(errc::io), 1));
    out.os = static_cast<int>(in.u32());
    out.step = known_step(in.text());
    out.detail = in.text();
    out.remedy = in.text();
    if (!in.done()) return {errc::io, "launcher.keeper", 0, "its answer cannot be read"};
    if (out.step.empty()) out.step = "launcher.keeper";
    return out;
}

} // namespace glove::container
