// Stands in for glove-mediator: says and does what STAND_IN asks for, so that a case knows what its
// run has to do with.
//
//   ready   ready at once, ends with its channel
//   notes   the same, with two lines to tell
//   fail    cannot start its servers, and says why in two lines
//   quit    ends with status 3 and says nothing
//   killed  is killed before it is ready
//   slow    is never ready, ends with its channel
//   ended   ready, then gives up with words
//   gone    ready, then ends without a word
//   left    ready, then says that the agent has left, and ends in order
//   leave   the same, and does not end in order
//   late    ready, ends with its channel, but not in order
//   wrong   ready, then says what is no word
//   hang    ready, and does not end with its channel
//   deaf    the same, and SIGTERM does not end it
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <glove/kernel/mediation.hpp>
#include <glove/sys/files.hpp>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace glove;

void say(std::string_view word) {
    (void)!::send(kernel::control_descriptor, word.data(), word.size(), MSG_NOSIGNAL);
}

// What arrives until the channel ends, a word for each.
[[nodiscard]] auto hear() -> std::string {
    std::string heard;
    for (;;) {
        char byte = 0;
        alignas(::cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
        ::iovec part{&byte, 1};
        ::msghdr whole{};
        whole.msg_iov = &part;
        whole.msg_iovlen = 1;
        whole.msg_control = space;
        whole.msg_controllen = sizeof space;
        if (::recvmsg(kernel::control_descriptor, &whole, 0) != 1) return heard;
        heard += byte;
        heard += whole.msg_controllen > 0 ? "+fd " : " ";
    }
}

void leave(const char* name, std::string_view text) {
    const char* const folder = std::getenv("STAND_IN_FOLDER");
    if (folder == nullptr) return;
    const int file =
        ::open((std::string{folder} + "/" + name).c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    (void)!::write(file, text.data(), text.size());
}

} // namespace

auto main() -> int {
    const char* const asked = std::getenv("STAND_IN");
    const std::string_view what{asked == nullptr ? "ready" : asked};
    std::string text;
    char bytes[4096];
    for (ssize_t got = 0; (got = ::read(kernel::mediation_descriptor, bytes, sizeof bytes)) > 0;)
        text.append(bytes, static_cast<std::size_t>(got));
    const auto told = kernel::decode_mediation(text);
    if (!told) return 9;
    leave("told", text);
    leave("leads", ::getsid(0) == ::getpid() ? "its own session" : "the caller's session");
    if (told->task == kernel::task::check) {
        if (what == "fail") return 2;
        (void)!::write(1, "a rule\nanother\n", 15);
        return 0;
    }
    if (what == "fail") {
        say("fthe server demo did not start\nits last words");
        return 1;
    }
    if (what == "quit") return 3;
    if (what == "killed") (void)::raise(SIGKILL);
    if (what == "slow") {
        leave("heard", hear());
        return 0;
    }
    if (what == "deaf") (void)::signal(SIGTERM, SIG_IGN); // before anybody can send it
    say(what == "notes" ? "rthe first\nthe second" : "r");
    if (what == "left" || what == "leave") {
        say("a");
        return what == "left" ? 0 : 4;
    }
    if (what == "ended" || what == "gone" || what == "wrong") {
        ::usleep(300'000);
        if (what == "ended") say("ethe record cannot be written");
        if (what == "wrong") say("x");
        if (what == "gone") return 4;
        leave("heard", hear());
        return 0;
    }
    leave("heard", hear());
    if (what == "hang" || what == "deaf")
        for (;;) ::pause();
    return what == "late" ? 4 : 0;
}
