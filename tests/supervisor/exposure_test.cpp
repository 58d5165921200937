// Exposures on the wire and on record: every row broken in every way, digests that others compute,
// and what may be shown to others.
#include "exposure_scene.hpp"
#include "supervisor/exposure_fields.hpp"
#include <functional>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <support/malformed.hpp>

namespace {

using namespace glove;
using namespace glove::supervisor;
using test::digits;
using test::mib;
using wire::json::value;

template<class T> auto problem_of(const result<T>& out) -> std::optional<error> {
    if (out) return std::nullopt;
    return out.error();
}
auto step_of(const std::optional<error>& problem) -> std::string {
    return problem ? std::string{problem->step} : "";
}
auto tree(const result<std::string>& text) -> value { return *wire::json::read(text.value()); }

const auto* const source_digest =
    "8e2a0bb49864ca59394517295271f6495c93ea1e5c9ad0694c748fc8f8c0068d";

auto usual_descriptor() -> exposure_descriptor {
    exposure_descriptor out{
        "proj",        1, "projects", source_digest, "", "proj", {test::read_mode()}, 3'601'000,
        {"codex-safe"}};
    out.scope_digest = scope_digest(out).value();
    return out;
}
auto hashed(exposure_record record) -> exposure_record {
    record.record_hash = record_hash(record).value();
    return record;
}
auto created_record() -> exposure_record {
    return hashed({1,
                   exposure_created{usual_descriptor(), "init-proj",
                                    request_digest("init-proj", test::usual_create()).value(),
                                    test::usual_host_path, digits('7')},
                   digits('0'),
                   {}});
}
auto revoked_record() -> exposure_record {
    const revoke_exposure what{"proj", 1};
    return hashed(
        {2,
         exposure_revoked{"revoke-1", request_digest("revoke-1", what).value(), "proj", 1, 5000},
         created_record().record_hash,
         {}});
}

TEST(Exposure, HasTheDigestsThatOthersCompute) {
    EXPECT_EQ(source_identity_digest({1, 2, 040755, 1000, 1000}).value(), source_digest);
    EXPECT_EQ(source_identity_digest(identity_of(test::made_up_source().facts)).value(),
              source_digest);
    EXPECT_EQ(scope_digest(usual_descriptor()).value(),
              "740f44b5523791811398674681d6a167047a61f03f630af4a138be0fbb73ecf9");
    EXPECT_EQ(request_digest("init-proj", test::usual_create()).value(),
              "e474349675d96f614f542743157d40344b720225990ac6499a58d35e7a3a0dc0");
    EXPECT_EQ(request_digest("revoke-1", revoke_exposure{"proj", 1}).value(),
              "697735bbb2a6b9ff1f6bd04cd5e3ba9b2286ece472c96ac7007d95c7460ba685");
}

TEST(Exposure, ARecordHasTheHashThatItsRuleGives) {
    EXPECT_EQ(created_record().record_hash,
              "3f052a3f4f3cdae22f21159b7200ae192a6a00c8f9bd3d04232b3418b7376e2b");
    EXPECT_EQ(revoked_record().record_hash,
              "b18135d1c1cd727c1c0457d5a3e700105bd35a765e1f8d2eb48098b74b085fdb");
}

template<class T>
void expect_all_different(const std::function<result<std::string>(const T&)>& digest, const T& base,
                          const std::vector<std::function<void(T&)>>& edits) {
    std::vector<std::string> seen{digest(base).value()};
    for (const auto& edit : edits) {
        auto other = base;
        edit(other);
        seen.push_back(digest(other).value());
    }
    const auto count = seen.size();
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(static_cast<std::size_t>(std::unique(seen.begin(), seen.end()) - seen.begin()),
              count);
}

TEST(Exposure, EveryMemberIsPartOfItsDigest) {
    expect_all_different<source_identity>(source_identity_digest, {1, 2, 3, 4, 5},
                                          {[](auto& s) { ++s.device; }, [](auto& s) { ++s.inode; },
                                           [](auto& s) { ++s.mode; }, [](auto& s) { ++s.uid; },
                                           [](auto& s) { ++s.gid; }});
    expect_all_different<exposure_descriptor>(
        scope_digest, usual_descriptor(),
        {[](auto& d) { d.exposure_id += "x"; }, [](auto& d) { ++d.generation; },
         [](auto& d) { d.root_id += "x"; }, [](auto& d) { d.source_identity_digest = digits('9'); },
         [](auto& d) { d.allowed_modes.front() = test::ephemeral_mode(); },
         [](auto& d) { d.allowed_modes.front().max_bytes = 1; },
         [](auto& d) { d.allowed_modes.front().cleanup_policy = cleanup_kind::remove; },
         [](auto& d) { ++d.expires_at_ms; },
         [](auto& d) { d.allowed_runtime_template_ids.emplace_back("x"); }});
    const auto request = [](const create_exposure& what) { return request_digest("id", what); };
    expect_all_different<create_exposure>(
        request, test::usual_create(),
        {[](auto& c) { c.exposure_id += "x"; }, [](auto& c) { c.root_id += "x"; },
         [](auto& c) { c.host_path += "x"; }, [](auto& c) { c.display_label += "x"; },
         [](auto& c) { c.allowed_modes.push_back(test::ephemeral_mode()); },
         [](auto& c) { ++c.ttl_secs; },
         [](auto& c) { c.allowed_runtime_template_ids.emplace_back("x"); }});
    EXPECT_NE(request_digest("a", test::usual_create()).value(),
              request_digest("b", test::usual_create()).value());
    expect_all_different<exposure_record>(
        record_hash, created_record(),
        {[](auto& r) { ++r.sequence; }, [](auto& r) { r.previous_hash = digits('1'); },
         [](auto& r) { std::get<0>(r.fact).descriptor.display_label += "x"; },
         [](auto& r) { std::get<0>(r.fact).descriptor.scope_digest = digits('1'); },
         [](auto& r) { ++std::get<0>(r.fact).descriptor.expires_at_ms; },
         [](auto& r) { std::get<0>(r.fact).request_id += "x"; },
         [](auto& r) { std::get<0>(r.fact).request_digest = digits('1'); },
         [](auto& r) { std::get<0>(r.fact).host_path += "x"; },
         [](auto& r) { std::get<0>(r.fact).parent_identity_digest = digits('1'); }});
    expect_all_different<exposure_record>(
        record_hash, revoked_record(),
        {[](auto& r) { std::get<1>(r.fact).request_id += "x"; },
         [](auto& r) { std::get<1>(r.fact).request_digest = digits('1'); },
         [](auto& r) { std::get<1>(r.fact).exposure_id += "x"; },
         [](auto& r) { ++std::get<1>(r.fact).generation; },
         [](auto& r) { ++std::get<1>(r.fact).revoked_at_ms; }});
}

// --- form ---

TEST(Exposure, EachRowOfARequestIsEnforced) {
    const auto whole = tree(encode(test::usual_create()));
    const auto judge = [](const std::string& text) { return problem_of(decode_create(text)); };
    test::expect_each_to_be_refused(create_fields, whole, "", judge);
    test::expect_each_to_be_refused(mode_fields, whole, "allowed_modes/0", judge);
    test::expect_each_to_be_refused(
        revoke_fields, tree(encode(revoke_exposure{"proj", 1})), "",
        [](const std::string& text) { return problem_of(decode_revoke(text)); });
}

TEST(Exposure, ListsOfARequestMayComeInAnyOrderAndNothingTwice) {
    auto sorted = test::usual_create();
    sorted.allowed_modes = {test::read_mode(), test::ephemeral_mode(1), test::ephemeral_mode(2),
                            test::retained_mode()};
    sorted.allowed_runtime_template_ids = {"a", "b"};
    auto other = sorted;
    std::reverse(other.allowed_modes.begin(), other.allowed_modes.end());
    std::reverse(other.allowed_runtime_template_ids.begin(),
                 other.allowed_runtime_template_ids.end());
    EXPECT_EQ(normalised(other).value(), sorted);
    EXPECT_EQ(decode_create(wire::encode(other, create_fields).value()).value(), sorted);
    other.allowed_modes.push_back(test::read_mode());
    EXPECT_EQ(normalised(other).error().step, "exposure.unique");
    EXPECT_EQ(normalised(other).error().detail, "$.allowed_modes[4] appears twice");
    sorted.allowed_runtime_template_ids = {"a", "a"};
    EXPECT_EQ(normalised(sorted).error().detail, "$.allowed_runtime_template_ids[1] appears twice");
}

TEST(Exposure, ThereAreThreeKindsOfModes) {
    int good = 0;
    for (int a = 0; a < 4; ++a)
        for (int m = 0; m < 4; ++m)
            for (int c = 0; c < 2; ++c)
                for (const std::uint64_t bytes :
                     {std::uint64_t{0}, std::uint64_t{1}, 32 * mib - 1, 32 * mib, UINT64_MAX}) {
                    const exposure_mode mode{static_cast<access_kind>(a),
                                             static_cast<materialization_kind>(m), bytes,
                                             static_cast<cleanup_kind>(c)};
                    const bool known = mode == test::read_mode() ||
                                       (bytes > 0 && mode == test::ephemeral_mode(bytes)) ||
                                       (bytes >= 32 * mib && mode == test::retained_mode(bytes));
                    EXPECT_EQ(fault_of(mode).empty(), known) << a << m << c << bytes;
                    good += known ? 1 : 0;
                }
    EXPECT_EQ(good, 1 + 4 + 2);
}

TEST(Exposure, AModeIsWithinOneThatAllowsAsMuch) {
    const auto allowed = test::ephemeral_mode(10);
    EXPECT_TRUE(within(test::ephemeral_mode(10), allowed));
    EXPECT_TRUE(within(test::ephemeral_mode(1), allowed));
    EXPECT_FALSE(within(test::ephemeral_mode(11), allowed));
    EXPECT_FALSE(within(test::read_mode(), allowed));
    EXPECT_FALSE(within(test::retained_mode(10), allowed));
}

TEST(Exposure, WhatIsShownHoldsNothingOfTheHost) {
    const catalog_entry entry{1,           "proj",         1,
                              digits('d'), "proj",         {test::read_mode()},
                              3'601'000,   {"codex-safe"}, exposure_state::active};
    const auto text = encode(entry).value();
    EXPECT_EQ(text, R"({"schema_version":1,"exposure_id":"proj","generation":1,"scope_digest":")" +
                        digits('d') +
                        R"(","display_label":"proj","allowed_modes":[{"access":"read",)"
                        R"("materialization":"bind","max_bytes":0,"cleanup_policy":"retain"}],)"
                        R"("expires_at_ms":3601000,"allowed_runtime_template_ids":["codex-safe"],)"
                        R"("state":"active"})");
    EXPECT_EQ(decode_catalog_entry(text).value(), entry);
    test::expect_each_to_be_refused(
        catalog_fields, tree(encode(entry)), "",
        [](const std::string& t) { return problem_of(decode_catalog_entry(t)); });
}

// --- records ---

TEST(Exposure, ARecordDecodesToWhatWasEncoded) {
    for (const auto& record : {created_record(), revoked_record()}) {
        const auto text = encode(record);
        ASSERT_TRUE(text);
        EXPECT_EQ(decode_exposure_record(*text).value(), record);
        EXPECT_LT(text->size(), most_exposure_record_bytes);
    }
}

TEST(Exposure, TheLargestRecordHasRoom) {
    auto record = created_record();
    auto& fact = std::get<exposure_created>(record.fact);
    fact.descriptor.exposure_id = fact.descriptor.root_id = std::string(128, 'a');
    fact.descriptor.display_label = std::string(256, '"');
    fact.descriptor.allowed_modes.clear();
    for (std::uint64_t i = 0; i < 8; ++i)
        fact.descriptor.allowed_modes.push_back(test::retained_mode(UINT64_MAX - 8 + i));
    fact.descriptor.allowed_runtime_template_ids.clear();
    for (char c = 0; c < 64; ++c)
        fact.descriptor.allowed_runtime_template_ids.push_back(std::string(126, 'a') +
                                                               static_cast<char>('A' + c / 16) +
                                                               static_cast<char>('a' + c % 16));
    fact.request_id = std::string(128, 'a');
    fact.host_path = "/" + std::string(4095, '"');
    record = hashed(record);
    const auto text = encode(record);
    ASSERT_TRUE(text) << text.error().detail;
    EXPECT_LT(text->size(), most_exposure_record_bytes / 2);
    EXPECT_EQ(decode_exposure_record(*text).value(), record);
}

TEST(Exposure, EachRowOfARecordIsEnforced) {
    const auto judge = [](const std::string& t) { return problem_of(decode_exposure_record(t)); };
    for (const auto& record : {created_record(), revoked_record()}) {
        const auto whole = tree(encode(record));
        test::expect_each_to_be_refused(record_fields, whole, "", judge);
        test::expect_each_to_be_refused(descriptor_fields, whole, "descriptor", judge);
    }
    test::expect_each_to_be_refused(mode_fields, tree(encode(created_record())),
                                    "descriptor/allowed_modes/0", judge);
}

TEST(Exposure, ARecordThatWasChangedAnywhereIsNotWhatItsHashSays) {
    for (const auto& record : {created_record(), revoked_record()}) {
        const auto text = encode(record).value();
        for (std::size_t i = 0; i < text.size(); ++i)
            for (const char c : {'0', '1', ' ', 'z', static_cast<char>(text[i] ^ 1)}) {
                auto other = text;
                other[i] = c;
                if (other == text) continue;
                EXPECT_FALSE(decode_exposure_record(other)) << i << other;
            }
        for (std::size_t i = 0; i < text.size(); ++i)
            EXPECT_FALSE(decode_exposure_record(text.substr(0, i)));
    }
}

TEST(Exposure, ARecordIsACreationOrARevocation) {
    const auto with = [](const exposure_record& record, std::string_view path,
                         std::string_view name, const value& data) {
        return step_of(problem_of(decode_exposure_record(
            wire::json::to_text(test::with_member(tree(encode(record)), path, name, data)))));
    };
    EXPECT_EQ(with(created_record(), "", "revoked_at_ms", 1), "exposure.record");
    EXPECT_EQ(with(created_record(), "", "state", "revoked"), "exposure.record");
    EXPECT_EQ(with(created_record(), "", "exposure_id", "other"), "exposure.record");
    EXPECT_EQ(with(created_record(), "", "generation", 2), "exposure.record");
    EXPECT_EQ(with(created_record(), "", "exposure_id", "proj"), "exposure.record");
    EXPECT_EQ(with(created_record(), "descriptor", "state", ""), "exposure.record");
    EXPECT_EQ(with(created_record(), "", "host_path", ""), "exposure.record");
    EXPECT_EQ(with(revoked_record(), "", "host_path", "/x"), "exposure.record");
    EXPECT_EQ(with(revoked_record(), "descriptor", "exposure_id", "proj"), "exposure.record");
    EXPECT_EQ(with(revoked_record(), "", "state", "active"), "exposure.record");
    auto unsorted = created_record();
    std::get<0>(unsorted.fact).descriptor.allowed_runtime_template_ids = {"b", "a"};
    EXPECT_EQ(step_of(problem_of(decode_exposure_record(encode(hashed(unsorted)).value()))),
              "exposure.order");
}

} // namespace
