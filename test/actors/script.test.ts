import { describe, expect, it, vi } from "vitest"
import { answerCharsMax, foldedCharsMax } from "../../actors/limits.ts"
import { bridge } from "../../actors/session/bridge.ts"
import { scriptProgress } from "../../actors/session/script.ts"

const end = (name: string, text: string): string =>
  scriptProgress(bridge, { name, quest: "the Grail", hard_question: text })._tag

const accepted = {
  "Sir Robin": ["Assur", "ashur!", "It is Nineveh.", "Kalhu", "dur-sharrukin", "Dur Šarrukin"],
  "brave sir ROBIN": ["Nimrud", "Calah, I think"],
  "Sir Lancelot of Camelot": ["Blue.", "my favourite colour is dark red", "GREY"],
  Galahad: ["yellow", "It's blue", "blue, of course: blue"],
  Arthur: [
    "African or European?",
    "What do you mean? An African or European swallow?",
    "an african or a european swallow",
    "24 mph",
    "24mph",
    "about 20.1 miles per hour.",
    "11 m/s",
    "8,8 m/s",
    "40 km/h",
    "11 metres per second, which is 24 mph"
  ]
}

const rejected = {
  "Sir Robin": ["I don't know that!", "Babylon", "Assurance", ""],
  "Sir Lancelot": ["Nineveh", "I don't know", "colourless"],
  Galahad: ["Blue. No, yellow!", "blue or green", "not blue", "blue... no", "bluebell"],
  Arthur: [
    "I don't know that!",
    "African",
    "It is an African one, and not European",
    "24",
    "11",
    "24 m/s",
    "11 mph",
    "19 mph",
    "-24 mph",
    "24 mphs",
    "24 mph or 100 mph",
    "mph"
  ]
}

describe("the bridge", () => {
  for (const [name, texts] of Object.entries(accepted)) {
    for (const text of texts) {
      it(`lets ${name} pass: ${text}`, () => expect(end(name, text)).toBe("Crossed"))
    }
  }
  for (const [name, texts] of Object.entries(rejected)) {
    for (const text of texts) {
      it(`casts ${name}: ${text}`, () => expect(end(name, text)).toBe("Cast"))
    }
  }
  it("asks in order, the third question by the name", () => {
    expect(scriptProgress(bridge, {})).toEqual({
      _tag: "Asks",
      step: "name",
      p: "What is your name?"
    })
    expect(scriptProgress(bridge, { name: "Arthur" }))
      .toEqual({ _tag: "Asks", step: "quest", p: "What is your quest?" })
    const third = (name: string): string => scriptProgress(bridge, { name, quest: "x" }).p
    expect(third("Arthur")).toMatch(/swallow/)
    expect(third("Robin")).toMatch(/Assyria/)
    expect(third("lancelot")).toMatch(/colour/)
    expect(third("Galahad")).toMatch(/colour/)
  })
  it("reads each answer a few times, however many quantities it has", () => {
    const normalize = vi.spyOn(String.prototype, "normalize")
    try {
      const text = "24mph ".repeat(900)
      expect(end("x", text)).toBe("Crossed")
      expect(normalize.mock.contexts.filter((one) => String(one) === text).length).toBeLessThan(4)
      normalize.mockClear()
      end("x".repeat(answerCharsMax), "no")
      const isName = (one: unknown) => String(one).length === answerCharsMax
      expect(normalize.mock.contexts.filter(isName).length).toBeLessThan(4)
    } finally {
      normalize.mockRestore()
    }
  })

  it("compares a bounded part of an answer whose characters are many without accents", () => {
    const each = "\ufdfa".normalize("NFKD").length
    const long = "\ufdfa".repeat(Math.ceil(foldedCharsMax / each))
    expect(long.length).toBeLessThan(answerCharsMax)
    expect(end("Arthur", `24 mph ${long} 1 mph`)).toBe("Crossed")
    expect(end("Arthur", "24 mph 1 mph")).toBe("Cast")
  })

  it("takes no blank answer", () => {
    expect(scriptProgress(bridge, { name: " " })).toMatchObject({ _tag: "Cast", step: "name" })
  })
})
