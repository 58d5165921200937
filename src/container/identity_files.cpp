// The files that say who and where the agent is. They name only the agent: nothing of the host's
// users, hosts, name servers or machine identity is in them.
#include <glove/container/plan.hpp>

namespace glove::container {

namespace {

[[nodiscard]] auto text_file(std::string path, std::string content) -> tree_entry {
    return {.path = std::move(path),
            .kind = entry_kind::file,
            .permissions = 0444,
            .text = std::move(content)};
}

[[nodiscard]] auto passwd(const user_identity& user, std::string_view shell) -> std::string {
    const auto row = [&](std::string_view name, std::string_view uid, std::string_view gid,
                         std::string_view home, std::string_view with) {
        std::string out{name};
        for (const auto part : {std::string_view{"x"}, uid, gid, name, home, with})
            out.append(":").append(part);
        return out + "\n";
    };
    const auto uid = std::to_string(user.uid);
    const auto gid = std::to_string(user.gid);
    std::string out;
    if (user.uid != 0) out += row("root", "0", "0", "/nonexistent", "/usr/sbin/nologin");
    out += row(user.name(), uid, gid, home_directory, shell);
    if (user.uid != 65534)
        out += row("nobody", "65534", "65534", "/nonexistent", "/usr/sbin/nologin");
    return out;
}

[[nodiscard]] auto group(const user_identity& user) -> std::string {
    std::string out;
    if (user.gid != 0) out += "root:x:0:\n";
    out += std::string{user.gid == 0 ? "root" : "agent"} + ":x:" + std::to_string(user.gid) + ":\n";
    if (user.gid != 65534) out += "nogroup:x:65534:\n";
    return out;
}

[[nodiscard]] auto dotted(std::uint32_t address) -> std::string {
    const net::ip_address::v4_bytes bytes{
        static_cast<std::uint8_t>(address >> 24U), static_cast<std::uint8_t>(address >> 16U),
        static_cast<std::uint8_t>(address >> 8U), static_cast<std::uint8_t>(address)};
    return net::ip_address{bytes}.to_string();
}

// Allowed names have addresses of the private loopback; the bridge takes connections there further.
[[nodiscard]] auto hosts(const bridge_plan* bridge) -> std::string {
    std::string out = "127.0.0.1\tlocalhost\n127.0.1.1\t";
    out.append(host_name).append("\n::1\tlocalhost ip6-localhost ip6-loopback\n");
    if (bridge == nullptr) return out;
    for (const auto& [name, address] : bridge->names)
        out.append(dotted(address)).append("\t").append(name).append("\n");
    return out;
}

[[nodiscard]] auto name_service(const bridge_plan* bridge) -> std::string {
    if (bridge == nullptr || bridge->rules.empty())
        return "# There is no name service in this sandbox.\n";
    return "# Knows the allowed names only; no query leaves the sandbox.\nnameserver " +
           std::string{name_server} + "\n";
}

} // namespace

auto identity_files(const user_identity& user, std::string_view shell, const bridge_plan* bridge)
    -> std::vector<tree_entry> {
    std::vector<tree_entry> out;
    out.push_back(text_file("/etc/passwd", passwd(user, shell)));
    out.push_back(text_file("/etc/group", group(user)));
    out.push_back(text_file("/etc/hosts", hosts(bridge)));
    out.push_back(text_file("/etc/hostname", std::string{host_name} + "\n"));
    out.push_back(text_file("/etc/resolv.conf", name_service(bridge)));
    out.push_back(text_file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\n"
                                                  "hosts: files dns\nnetworks: files\n"
                                                  "services: files\nprotocols: files\n"));
    return out;
}

} // namespace glove::container
