// Turns a plan into plain values: pointers into the plan's own strings, and tables with room for
// what init adds to its copy. Changes nothing but the number of a mount's descriptor.
#include "container/linux/prepared_launch.hpp"
#include "container/linux/seccomp_bpf.hpp"
#include "container/linux/steps.hpp"
#include "container/tree.hpp"
#include "sys/confine.hpp"
#include <algorithm>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace glove::container {

namespace {

[[nodiscard]] auto pointers(const std::vector<std::string>& texts) -> std::vector<const char*> {
    std::vector<const char*> out;
    out.reserve(texts.size() + 1);
    for (const auto& text : texts) out.push_back(text.c_str());
    out.push_back(nullptr);
    return out;
}

[[nodiscard]] constexpr auto blocked_farewells() -> unsigned long {
    unsigned long out = 0;
    for (const int one : sys::farewells) out |= 1UL << (one - 1);
    return out;
}

// Whether something mounted from the host provides `path`, given entries in mounting order.
class host_cover {
public:
    [[nodiscard]] auto covers(std::string_view path) const -> bool {
        return !nearest_.empty() && sys::holds(nearest_, path);
    }
    void after(const tree_entry& entry) {
        if (is_of_elsewhere(entry.kind) && !covers(entry.path)) nearest_ = entry.path;
    }

private:
    std::string_view nearest_;
};

// The number under which init finds a mount until it has put it in its place.
[[nodiscard]] auto keep_mount(prepared_launch& out, sys::fd_ref mount) -> result<int> {
    int number = mount.get();
    if (number < first_kept_descriptor) {
        sys::unique_fd moved{::fcntl(number, F_DUPFD_CLOEXEC, first_kept_descriptor)};
        if (!moved) return fail_os("launch.mounts");
        number = out.moved.emplace_back(std::move(moved)).get();
    }
    out.kept.push_back(number);
    return number;
}

[[nodiscard]] auto add_operations(prepared_launch& to, const plan& source) -> result<> {
    auto& out = to.tree;
    out.reserve(source.tree.size());
    host_cover cover;
    for (const auto& entry : source.tree) {
        int mount = -1;
        if (entry.kind == entry_kind::mounted && entry.pin) {
            GLOVE_TRY(mount, keep_mount(to, entry.pin));
        }
        out.push_back({
            .kind = entry.kind,
            .path = entry.path.c_str() + 1,
            .text = entry.text.c_str(),
            .text_size = entry.text.size(),
            .permissions = entry.permissions,
            .is_directory = entry.identity.type == S_IFDIR,
            .writable = entry.mode == access::write,
            .make_point = !cover.covers(entry.path),
            .may_vanish = entry.origin == origin::guarded,
            .identity = entry.identity,
            .mount = mount,
        });
        cover.after(entry);
    }
    return {};
}

// The open flags of the streams that are /dev/null; -1 for every other.
[[nodiscard]] auto null_streams(const std::array<int, 3>& streams) -> std::array<int, 3> {
    std::array<int, 3> out{-1, -1, -1};
    for (std::size_t i = 0; i < streams.size(); ++i) {
        struct ::stat found{};
        if (::fstat(streams[i], &found) != 0 || !S_ISCHR(found.st_mode)) continue;
        if (found.st_rdev != ::makedev(1, 3)) continue;
        if (const int flags = ::fcntl(streams[i], F_GETFL); flags >= 0)
            out[i] = flags & (O_ACCMODE | O_APPEND);
    }
    return out;
}

[[nodiscard]] auto known_name(const bridge_name& from) -> bridge_known {
    bridge_known out{
        .address = from.address, .size = static_cast<std::uint8_t>(from.name.size()), .name = {}};
    from.name.copy(out.name, sizeof out.name);
    return out;
}

// The tables of the bridge, with room for the names that programs will ask for.
[[nodiscard]] auto prepare_bridge(prepared_launch& out, const bridge_plan& bridge, int channel)
    -> bridge_setup {
    std::vector<std::string_view> order;
    for (const auto& name : bridge.names) {
        out.known.push_back(known_name(name));
        order.push_back(name.name);
    }
    // Not a name that anybody asks the name service for: programs know it themselves.
    out.known.push_back(known_name({"localhost", inner_loopback}));
    order.push_back("localhost");
    for (const auto& one : bridge.listeners) {
        const auto at = std::ranges::find(order, one.name) - order.begin();
        out.sockets.push_back(
            {.address = one.address,
             .port = one.port,
             .known = one.name.empty() ? bridge_socket::for_proxy : static_cast<std::uint32_t>(at),
             .fd = -1});
    }
    for (const auto& rule : bridge.rules.all())
        if (rule.kind == net::rule_kind::domain)
            out.domains.push_back({.name = rule.name.c_str(),
                                   .size = static_cast<std::uint32_t>(rule.name.size()),
                                   .port = rule.port});
    const auto known_count = static_cast<std::uint32_t>(out.known.size());
    const auto socket_count = static_cast<std::uint32_t>(out.sockets.size());
    out.known.resize(known_count + most_met_names);
    out.sockets.resize(socket_count + most_met_sockets);
    return {
        .channel = channel,
        .serves_names = !bridge.rules.empty(),
        .known = out.known.data(),
        .known_count = known_count,
        .known_capacity = known_count + most_met_names,
        .sockets = out.sockets.data(),
        .socket_count = socket_count,
        .socket_capacity = socket_count + most_met_sockets,
        .domains = out.domains.data(),
        .domain_count = static_cast<std::uint32_t>(out.domains.size()),
    };
}

[[nodiscard]] auto listeners_of(const plan& source) -> std::vector<listener_setup> {
    std::vector<listener_setup> out;
    for (const auto& one : source.listeners) {
        listener_setup made{.name = {}, .name_size = 0, .permissions = one.permissions};
        const auto name = std::string_view{one.path}.substr(listener_directory.size() + 1);
        made.name.sun_family = AF_UNIX;
        name.copy(made.name.sun_path, sizeof made.name.sun_path - 1);
        made.name_size =
            static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + name.size() + 1);
        out.push_back(made);
    }
    return out;
}

[[nodiscard]] auto terminal_of(const launch_request& request) -> terminal_setup {
    if (!request.terminal) return {};
    const auto& wish = *request.terminal;
    return {.wanted = true,
            .streams = wish.streams,
            .foreground = wish.foreground,
            .has_modes = wish.modes.has_value(),
            .quiet = wish.quiet,
            .modes = wish.modes.value_or(::termios{}),
            .size = wish.size};
}

} // namespace

auto prepare(const launch_request& request, int control)
    -> result<std::unique_ptr<prepared_launch>> {
    auto out = std::make_unique<prepared_launch>();
    const auto& source = *request.plan;
    out->source = &source;
    GLOVE_CHECK(add_operations(*out, source));
    int root = -1;
    if (source.scratch_mount) {
        GLOVE_TRY(root, keep_mount(*out, source.scratch_mount));
    }
    std::ranges::sort(out->kept);
    out->programs = pointers(source.programs);
    out->argv = pointers(source.argv);
    out->environment = pointers(source.environment);
    out->listeners = listeners_of(source);
    out->scratch_bytes = std::to_string(source.scratch.bytes);
    out->scratch_inodes = std::to_string(source.scratch.inodes);
    out->child = {
        .streams = request.streams,
        .nothing = null_streams(request.streams),
        .control = control,
        .kept = out->kept,
        .root = root,
        .tree = out->tree.data(),
        .tree_size = static_cast<std::uint32_t>(out->tree.size()),
        .scratch_bytes = out->scratch_bytes.c_str(),
        .scratch_inodes = out->scratch_inodes.c_str(),
        .scratch_size = source.scratch.bytes,
        .work_directory = source.work_directory.c_str(),
        .programs = out->programs.data(),
        .argv = out->argv.data(),
        .environment = out->environment.data(),
        .filter = seccomp::program_for(source.network, 0),
        .open_files = request.open_files,
        .blocked_signals = request.deaf ? blocked_farewells() : 0,
        .loopback = source.network == network_tier::local || source.network == network_tier::egress,
        .bridge = {},
        .terminal = terminal_of(request),
        .listeners = out->listeners,
        .listener_place =
            source.listener_place.empty() ? nullptr : source.listener_place.c_str() + 1,
        // In the namespace of the one who asks, and perhaps further out: from there nobody can
        // tell.
        .host_root = source.user.outer_uid() == 0,
        .arguments = request.arguments.begin,
        .arguments_size = request.arguments.size,
    };
    if (source.bridge && request.bridge != nullptr)
        out->child.bridge = prepare_bridge(*out, *source.bridge, request.bridge->get());
    return out;
}

} // namespace glove::container
