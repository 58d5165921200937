// Another program of the host that changes names while Glove looks at them.
#pragma once
#include <atomic>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <thread>

namespace glove::test {

// Swaps two names as fast as it can until it goes away.
class racer {
public:
    racer(std::string a, std::string b)
        : thread_{[this, first = std::move(a), second = std::move(b)] {
              while (!done_)
                  (void)::renameat2(AT_FDCWD, first.c_str(), AT_FDCWD, second.c_str(),
                                    RENAME_EXCHANGE);
          }} {}
    racer(const racer&) = delete;
    auto operator=(const racer&) = delete;
    ~racer() {
        done_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> done_ = false;
    std::thread thread_;
};

} // namespace glove::test
