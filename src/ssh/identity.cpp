// Fingerprints, the list of an agent, and the choice among it.
#include "ssh/agent_message.hpp"
#include "ssh/fingerprint.hpp"
#include "ssh/upstream.hpp"
#include <algorithm>
#include <array>
#include <glove/base/text.hpp>
#include <glove/ssh/identity.hpp>
#include <poll.h>
#include <sys/socket.h>

namespace glove::ssh {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The name of the type that a key begins with.
[[nodiscard]] auto type_of(std::string_view blob) -> std::string {
    if (blob.size() < 4) return "unknown";
    std::size_t size = 0;
    for (const char c : blob.substr(0, 4)) size = size << 8U | static_cast<unsigned char>(c);
    if (size == 0 || size > 64 || size > blob.size() - 4) return "unknown";
    return printable(blob.substr(4, size));
}

[[nodiscard]] auto described(const std::vector<public_key>& keys) -> std::string {
    constexpr std::size_t most = 16;
    std::string out;
    for (std::size_t i = 0; i < std::min(keys.size(), most); ++i)
        out += (i == 0 ? "" : ", ") + keys[i].fingerprint + " (" + keys[i].comment + ")";
    return keys.size() > most ? out + " and " + std::to_string(keys.size() - most) + " more" : out;
}

[[nodiscard]] auto wait_for(sys::fd_ref socket, short events, steady_clock::time_point deadline)
    -> result<> {
    for (;;) {
        const auto left =
            std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()).count();
        if (left <= 0) return fail(errc::timed_out, "ssh.agent", "the ssh agent does not answer");
        ::pollfd source{socket.get(), events, 0};
        const int ready = ::poll(&source, 1, static_cast<int>(left));
        if (ready > 0) return {};
        if (ready < 0 && errno != EINTR) return fail_os("ssh.agent");
    }
}

[[nodiscard]] auto ask(sys::fd_ref agent, std::string_view frame, steady_clock::time_point deadline)
    -> result<std::string> {
    if (::send(agent.get(), frame.data(), frame.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(frame.size()))
        return fail_os("ssh.agent");
    frame_reader answer;
    std::array<char, 4096> bytes{};
    for (;;) {
        GLOVE_CHECK(wait_for(agent, POLLIN, deadline));
        const auto got = ::recv(agent.get(), bytes.data(), bytes.size(), 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0) return fail_os("ssh.agent");
        if (got == 0) return fail(errc::io, "ssh.agent", "the ssh agent hung up");
        answer.add({bytes.data(), static_cast<std::size_t>(got)});
        if (!answer.is_sound()) break;
        if (auto whole = answer.take()) return *std::move(whole);
    }
    return fail(errc::corrupt, "ssh.agent", "the ssh agent's answer is none");
}

} // namespace

auto agent_socket(const char* variable) -> result<std::string> {
    const std::string path{variable == nullptr ? "" : variable};
    if (path.starts_with('/')) return path;
    return fail(errc::not_found, "plan.ssh_agent",
                path.empty() ? "--ssh-agent: SSH_AUTH_SOCK is not set, so there is no ssh agent"
                             : "--ssh-agent: SSH_AUTH_SOCK is no absolute path: " + path,
                path.empty() ? "start one with: eval \"$(ssh-agent)\" && ssh-add" : "");
}

auto list_keys(sys::fd_ref socket, milliseconds patience) -> result<std::vector<public_key>> {
    const auto deadline = steady_clock::now() + patience;
    GLOVE_TRY(const auto agent, connect_to(socket));
    GLOVE_TRY(const auto answer, ask(agent, list_frame(), deadline));
    const auto found = read_identities(answer);
    if (!found)
        return fail(errc::corrupt, "ssh.agent", "the ssh agent's answer is no list of keys");
    std::vector<public_key> out;
    for (const auto& each : *found) {
        if (each.key.size() > longest_key) continue;
        out.push_back({.blob = each.key,
                       .comment = printable(each.comment.substr(0, longest_comment)),
                       .type = type_of(each.key),
                       .fingerprint = fingerprint_of(each.key)});
    }
    return out;
}

auto choose_key(std::vector<public_key> keys, std::string_view wish) -> result<public_key> {
    const std::string asked = "--ssh-agent" + (wish.empty() ? "" : " " + printable(wish));
    if (keys.empty())
        return fail(errc::not_found, "plan.ssh_agent", asked + ": the ssh agent holds no key",
                    "give it one with ssh-add");
    const auto listed = "it holds " + described(keys);
    std::erase_if(keys, [&](const auto& key) {
        return !wish.empty() && wish != key.fingerprint && printable(wish) != key.comment;
    });
    if (keys.empty())
        return fail(errc::not_found, "plan.ssh_agent",
                    asked + ": the ssh agent holds no such key; " + listed,
                    "name one by its fingerprint or its comment");
    if (keys.size() > 1)
        return fail(errc::conflict, "plan.ssh_agent",
                    asked + ": the ssh agent holds more than one such key; " + listed,
                    "name one by its fingerprint: --ssh-agent " + keys.front().fingerprint);
    return std::move(keys.front());
}

} // namespace glove::ssh
