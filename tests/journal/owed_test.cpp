// Whatever is appended, owed, given back and kept, in whatever order: what is owed can be written,
// and after a restart it can be reserved again.
#include <gmock/gmock.h>
#include <journal/notes.hpp>
#include <rapidcheck.h>

namespace {

using namespace glove;
using test::failing_disk;
using test::open_notes;
using test::settings_of;

constexpr std::size_t owed_each = 2; // a session owes two records
constexpr std::size_t owed_bytes = 450;

auto note_of(std::size_t text_bytes, bool guest) -> test::note {
    test::note out;
    out.text = std::string(text_bytes, 'x');
    out.guest = guest;
    return out;
}

// One case: a sequence of choices.
void play(const std::vector<std::uint8_t>& choices, bool small_file) {
    failing_disk disk;
    auto how = settings_of(journal::session_registry);
    how.records = small_file ? 0 : 12;
    how.file_bytes = small_file ? 6'000 : 0;
    how.quota[1] = {.records = 4, .bytes = 2'000};
    auto journal = open_notes(disk, how);
    std::vector<journal::reservation> sessions;
    for (const auto choice : choices) {
        auto& log = journal.log->core();
        switch (choice % 6U) {
        case 0:
            if (auto owed = log.reserve(owed_each, owed_bytes))
                sessions.push_back(*std::move(owed));
            break;
        case 1: (void)journal.log->append(note_of(choice, false)); break;
        case 2: (void)journal.log->append(note_of(choice, true)); break;
        case 3: // a session writes what it owes
            if (sessions.empty()) break;
            while (sessions.back().left() > 0)
                RC_ASSERT(journal.log->append(note_of(100, choice % 2U == 0), sessions.back())
                              .has_value());
            sessions.pop_back();
            break;
        case 4: (void)log.rotate({}); break;
        case 5: { // a restart: the sessions that live reserve again
            const auto living = sessions.size();
            sessions.clear();
            journal = open_notes(disk, how);
            RC_ASSERT(journal.log.has_value());
            for (std::size_t i = 0; i < living; ++i) {
                auto owed = journal.log->core().reserve(owed_each, owed_bytes);
                RC_ASSERT(owed.has_value());
                sessions.push_back(*std::move(owed));
            }
            break;
        }
        default: break;
        }
        RC_ASSERT(!journal.log->core().poisoned());
    }
    for (auto& one : sessions)
        while (one.left() > 0) RC_ASSERT(journal.log->append(note_of(200, false), one).has_value());
    RC_ASSERT(open_notes(disk, how).log.has_value());
}

TEST(Owed, FitsWhateverElseHappens) {
    for (const bool small_file : {false, true})
        EXPECT_TRUE(rc::check(
            [small_file](const std::vector<std::uint8_t>& choices) { play(choices, small_file); }));
}

} // namespace
