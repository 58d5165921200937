// Heads are copied as they lie in memory: both ends are built together.
#include "ssh/broker_protocol.hpp"
#include <cstring>

namespace glove::ssh {

namespace {

template<class Head> [[nodiscard]] auto joined(const Head& head, std::string_view rest) {
    std::string out(sizeof head, '\0');
    std::memcpy(out.data(), &head, sizeof head);
    return out += rest;
}

} // namespace

auto read_news(std::string_view bytes) -> std::optional<broker_report> {
    broker_message head;
    if (bytes.size() < sizeof head) return std::nullopt;
    std::memcpy(&head, bytes.data(), sizeof head);
    const auto data = bytes.substr(sizeof head);
    if (head.what > broker_news::sign || head.data_size != data.size() ||
        data.size() > longest_message || (head.flags & ~known_flags) != 0)
        return std::nullopt;
    if (head.what != broker_news::sign && !data.empty()) return std::nullopt;
    return broker_report{
        .what = head.what, .os = head.os, .flags = head.flags, .id = head.id, .data = data};
}

auto sign_news(std::uint64_t id, std::string_view data, std::uint32_t flags) -> std::string {
    broker_message head;
    head.what = broker_news::sign;
    head.flags = flags;
    head.data_size = static_cast<std::uint32_t>(data.size());
    head.id = id;
    return joined(head, data);
}

auto plain_news(broker_news what, int os) -> std::string {
    broker_message head;
    head.what = what;
    head.os = os;
    return joined(head, {});
}

auto identity_order(const identity& key) -> std::string {
    broker_order head;
    head.what = broker_word::identity;
    head.size = static_cast<std::uint32_t>(key.key.size());
    return joined(head, key.key + key.comment);
}

auto plain_order(broker_word what, std::uint64_t id, std::string_view bytes) -> std::string {
    broker_order head;
    head.what = what;
    head.size = static_cast<std::uint32_t>(bytes.size());
    head.id = id;
    return joined(head, bytes);
}

} // namespace glove::ssh
