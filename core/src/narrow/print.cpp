// Narrow code as text, for people.
#include "narrow/program.h"
#include "plan/describe.h"
#include "undertow/scalar.h"
#include "undertow/size.h"

namespace undertow {
namespace {

using Code = NarrowCode;

std::string cell(Cell x) { return x >= 0 ? "c" + std::to_string(x) : "k" + std::to_string(~x); }

/// The name of a code; for a scalar operator with its dtype, and whether its second operand is a constant.
std::string name_of(Code code) {
#define UNDERTOW_CODE(name, word) word,
  constexpr const char* names[] = {UNDERTOW_NARROW_CODES(UNDERTOW_CODE)};
#undef UNDERTOW_CODE
  if (code <= Code::Count) return names[static_cast<int>(code)];
  constexpr const char* dtypes[] = {"i32", "i64", "f32", "f64"};
  const auto within = [&](Code family, const char* word, const char* before) -> std::string {
    const int form = static_cast<int>(code) - static_cast<int>(family);
    if (form < 0 || form >= 4 * kForms<Code>) return "";
    return std::string(before) + word + " " + dtypes[form / kForms<Code>];
  };
#define UNDERTOW_SINGLE(name, word, from, type, to, to_type, result) \
  if (code == Code::name) return word " " #from " to " #to;
#define UNDERTOW_ROW(name, word, ...) \
  if (const std::string found = within(Code::name, word, ""); !found.empty()) return found;
#define UNDERTOW_JUMP(name, word, ...) \
  if (const std::string found = within(Code::Unless##name, word, "unless "); !found.empty()) return found;
  UNDERTOW_SINGLES(UNDERTOW_SINGLE)
  UNDERTOW_ARITHMETIC(UNDERTOW_ROW)
  UNDERTOW_DIVISIONS(UNDERTOW_ROW)
  UNDERTOW_TESTS(UNDERTOW_ROW)
  UNDERTOW_TESTS(UNDERTOW_JUMP)
#undef UNDERTOW_JUMP
#undef UNDERTOW_ROW
#undef UNDERTOW_SINGLE
  return "?";
}

std::string moves(const std::vector<NarrowMove>& all) {
  std::string text;
  for (const NarrowMove& move : all)
    text += (text.empty() ? "" : ", ") + std::string("c") + std::to_string(move.to) + " = " + cell(move.from);
  return text;
}

std::string line_of(const Plan& plan, const NarrowBody& body, const NarrowInstr& at) {
  const NarrowProgram& program = *plan.narrow;
  const std::string name = name_of(at.code), to = cell(at.to), target = std::to_string(at.extra);
  switch (at.code) {
    case Code::Move: return to + " = " + cell(at.a);
    case Code::Jump: return name + " " + target;
    case Code::Unless: return name + " " + cell(at.a) + " jump " + target;
    case Code::Return: return name;
    case Code::Call:
    case Code::Resume: {
      const NarrowCall& call = program.calls[z(at.extra)];
      return name + " @" + std::to_string(call.site) + " region " + std::to_string(call.region) + " phase " +
             std::to_string(call.phase) + " (" + moves(call.arguments) + ") -> (" + moves(call.results) + ")";
    }
    case Code::Count: return to + (at.extra == 1 ? " = 0" : " = " + to + " + 1");
    case Code::Collect:
    case Code::CollectAt: return name + " " + target + ", " + cell(at.a);
    case Code::Collected: return to + " = " + name + " " + target + " of " + cell(at.a);
    case Code::ReadEntry:
    case Code::ReadShared:
    case Code::ReadArray:
    case Code::ReadSharedArray: return to + " = " + name + " " + target;
    case Code::Pick: {
      std::string text = to + " = " + name;
      for (const NarrowPick::Input& input : program.picks[z(at.extra)].inputs) text += " " + cell(input.cell);
      return text;
    }
    case Code::Flat:
      return to + " = " + plan.kernel_ops[z(at.extra)] + " " + cell(at.a) + ", " + cell(at.b) + ", " +
             cell(body.asides[z(&at - body.code.data())].c);
    default: break;
  }
  const bool is_jump = at.code >= Code::UnlessLess;
  return to + " = " + name + " " + cell(at.a) + ", " + cell(at.b) + (is_jump ? " jump " + target : "");
}

}  // namespace

std::string describe_narrow(const Plan& plan) {
  std::string text;
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    const NarrowBody* body = plan.narrow->bodies[r].get();
    if (body == nullptr) continue;
    text +=
        "narrow code of region " + std::to_string(r) + ": " + std::to_string(body->cells) + " cells c, constants k\n";
    for (size_t k = 0; k < body->code.size(); ++k) {
      for (size_t phase = 0; phase < body->entries.size(); ++phase)
        if (z(body->entries[phase]) == k) text += "  phase " + std::to_string(phase) + "\n";
      text += "  " + std::to_string(k) + ": " + line_of(plan, *body, body->code[k]) + "\n";
    }
  }
  return text;
}

}  // namespace undertow
