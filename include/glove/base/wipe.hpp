// Forgetting a secret: the bytes are overwritten, and the compiler may not leave that out.
#pragma once
#include <string.h>
#include <string>

namespace glove {

// All that the string has ever held in this place, and it is empty afterwards.
inline void wipe(std::string& secret) noexcept {
    secret.resize(secret.capacity());
    ::explicit_bzero(secret.data(), secret.size());
    secret.clear();
}

// Wipes at the end of the scope, whichever way that is left.
class wiped_at_end {
public:
    explicit wiped_at_end(std::string& secret) noexcept : secret_{secret} {}
    wiped_at_end(const wiped_at_end&) = delete;
    auto operator=(const wiped_at_end&) -> wiped_at_end& = delete;
    ~wiped_at_end() { wipe(secret_); }

private:
    std::string& secret_;
};

} // namespace glove
