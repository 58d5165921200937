// Whatever the bytes: a request is taken only when it is, byte for byte, what is made of its parts;
// bytes that come in pieces give the messages that they give together; what an agent answers is
// taken only within its bounds.
#include "ssh/broker_protocol.hpp"
#include <algorithm>
#include <cstdlib>

namespace {

using namespace glove::ssh;

void require(bool holds) {
    if (!holds) std::abort();
}

void check_message(std::string_view message) {
    const auto request = read_request(message);
    const auto made = request.kind == request_kind::list ? list_frame()
                      : request.kind == request_kind::sign
                          ? sign_frame(request.key, request.data, request.flags)
                          : std::string(frame_head, '\0') + std::string{message};
    require(std::string_view{made}.substr(frame_head) == message);
    if (const auto signature = read_signature(message))
        require(signature_frame(*signature).substr(frame_head) == message);
    if (const auto found = read_identities(message); found && found->size() == 1)
        require(identities_frame(found->front()).substr(frame_head) == message);
    if (const auto news = read_news(message)) require(news->data.size() <= longest_message);
}

[[nodiscard]] auto messages(std::string_view bytes, std::size_t piece) -> std::string {
    frame_reader from;
    std::string out;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
        from.add(bytes.substr(0, piece));
        while (auto message = from.take()) out += "[" + *message + "]";
        if (!from.is_sound()) return out + "!";
        require(from.wanted() > 0);
    }
    return out;
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    check_message(bytes);
    if (size > 0) require(messages(bytes, size) == messages(bytes, 1U + data[0] % 16U));
    return 0;
}
