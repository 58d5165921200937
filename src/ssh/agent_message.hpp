// The messages of the ssh agent protocol that are let through, and nothing of what is in them.
//
// Guarantees: a message is taken only when every length in it holds and nothing follows; reading
// never looks beyond the bytes it was given. Frames that are made here are made from what was
// decided on, never copied from what came.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::ssh {

// A frame is its length in four bytes and so many bytes of message; the type is the first.
inline constexpr std::size_t frame_head = 4;
inline constexpr std::size_t longest_message = 256UL * 1024;
inline constexpr std::size_t longest_key = 16UL * 1024;
inline constexpr std::size_t longest_comment = 1024;
inline constexpr std::size_t longest_signature = 16UL * 1024;
inline constexpr std::size_t most_identities = 1024;

// Which hash a signature of an RSA key is over; of other keys they mean nothing.
inline constexpr std::uint32_t flag_sha2_256 = 2, flag_sha2_512 = 4;
inline constexpr std::uint32_t known_flags = flag_sha2_256 | flag_sha2_512;

// Takes whole messages out of bytes as they arrive.
class frame_reader {
public:
    void add(std::string_view bytes) { bytes_ += bytes; }
    // False once a frame was announced that is empty or too long: nothing after it can be read.
    [[nodiscard]] auto is_sound() const -> bool;
    // The next message, when all of it is there.
    [[nodiscard]] auto take() -> std::optional<std::string>;
    [[nodiscard]] auto has_part() const -> bool { return !bytes_.empty(); }
    // How many bytes the frame at hand still needs, at least one.
    [[nodiscard]] auto wanted() const -> std::size_t;

private:
    [[nodiscard]] auto announced() const -> std::optional<std::size_t>;
    std::string bytes_;
};

enum class request_kind : std::uint8_t { list, sign, other };
struct request {
    request_kind kind = request_kind::other; // also what cannot be understood
    std::string_view key;                    // of sign: stands in the message
    std::string_view data;
    std::uint32_t flags = 0;
};
[[nodiscard]] auto read_request(std::string_view message) -> request;

struct identity {
    std::string key; // as it travels: the type's name and the numbers
    std::string comment;
};

// Whole frames.
[[nodiscard]] auto failure_frame() -> std::string;
[[nodiscard]] auto identities_frame(const identity& only) -> std::string;
[[nodiscard]] auto signature_frame(std::string_view signature) -> std::string;
[[nodiscard]] auto list_frame() -> std::string;
[[nodiscard]] auto sign_frame(std::string_view key, std::string_view data, std::uint32_t flags)
    -> std::string;

// What an agent answers. Empty when it is no such answer.
[[nodiscard]] auto read_identities(std::string_view message)
    -> std::optional<std::vector<identity>>;
[[nodiscard]] auto read_signature(std::string_view message) -> std::optional<std::string>;
[[nodiscard]] auto is_failure(std::string_view message) -> bool;

} // namespace glove::ssh
