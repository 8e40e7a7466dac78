/**
 * Question scripts: the questions, how earlier answers change them, and which answers are
 * accepted, all as data. The functions read a script; they know no question of their own.
 */
import { foldedCharsMax } from "../limits.ts"
import { streamSafe } from "../text/index.ts"

/** The condition of an accepted answer; texts are compared without case and accents. */
export type Accepted =
  /** Anything that is not blank. */
  | { readonly _tag: "Anything" }
  /** One of these words or phrases occurs in it. */
  | { readonly _tag: "OneOf"; readonly alternatives: ReadonlyArray<string> }
  /** Every quantity in it has a known unit, and lies within its bounds, both inclusive. */
  | { readonly _tag: "Quantity"; readonly units: ReadonlyArray<Unit> }
  /** A question that has one word of each group. */
  | {
    readonly _tag: "AsksBack"
    readonly whether: ReadonlyArray<ReadonlyArray<string>>
    /** Words that make it a question where the question mark is missing. */
    readonly signs: ReadonlyArray<string>
  }
  /** Exactly one of these is named, and no word takes it back. */
  | {
    readonly _tag: "OneChoice"
    readonly among: ReadonlyArray<string>
    readonly retractions: ReadonlyArray<string>
  }

export interface Unit {
  readonly names: ReadonlyArray<string>
  readonly least: number
  readonly most: number
}

/** One wording of a question, and the answers that it accepts: any one of `accepts` is enough. */
export interface QuestionVariant {
  /** An earlier answer that must contain one of the texts; without it the variant always fits. */
  readonly when?: { readonly step: string; readonly contains: ReadonlyArray<string> }
  readonly ask: string
  readonly accepts: ReadonlyArray<Accepted>
}

export interface Question<Step extends string> {
  /** The name of its answer. */
  readonly step: Step
  /** The first that fits is asked. */
  readonly variants: readonly [...ReadonlyArray<QuestionVariant>, QuestionVariant]
}

export interface Script<Step extends string> {
  /** The text before the first question. */
  readonly entry: string
  readonly questions: ReadonlyArray<Question<Step>>
  /** The texts when all answers are right, when one is wrong, and when `continue` is not true. */
  readonly crossed: string
  readonly cast: string
  readonly confused: string
}

/** The texts of the answers so far. */
export type AnswerTexts<Step extends string> = { readonly [S in Step]?: string }

/**
 * Without case and accents. Some characters are 18 in this form, so that an answer of them would
 * take many times as long to read: what an answer has beyond `foldedCharsMax` is not compared.
 */
const fold = (text: string): string =>
  streamSafe(text).normalize("NFKD").slice(0, foldedCharsMax)
    .replace(/\p{M}/gu, "").toLowerCase().replaceAll("’", "'")

/** The words of a text with a space around each, so that `includes` finds whole words. */
const words = (text: string): string =>
  ` ${fold(text).split(/[^\p{L}\p{N}']+/u).filter((word) => word !== "").join(" ")} `

const names = (text: string, phrase: string): boolean => text.includes(words(phrase))

/** Whether a word goes on there. A character has two UTF-16 units at most. */
const goesOnAt = (text: string, at: number): boolean =>
  /^[\p{L}\p{N}/]/u.test(text.slice(at, at + 2))

const isQuantity = (text: string, units: ReadonlyArray<Unit>): boolean => {
  const folded = fold(text)
  const known = units.map(({ least, most, names }) => ({ least, most, names: names.map(fold) }))
  const found = [...folded.matchAll(/([+-]?\d+(?:[.,]\d+)?)\s*/g)]
  return found.length > 0 && found.every((number) => {
    const unitAt = number.index + number[0].length
    const value = Number(number[1]?.replace(",", "."))
    return known.some(({ least, most, names }) =>
      value >= least && value <= most &&
      names.some((name) =>
        folded.startsWith(name, unitAt) && !goesOnAt(folded, unitAt + name.length)
      )
    )
  })
}

const matches = (text: string, accepted: Accepted): boolean => {
  switch (accepted._tag) {
    case "Anything":
      return text.trim() !== ""
    case "OneOf": {
      const spoken = words(text)
      return accepted.alternatives.some((alternative) => names(spoken, alternative))
    }
    case "Quantity":
      return isQuantity(text, accepted.units)
    case "AsksBack": {
      const spoken = words(text)
      return accepted.whether.every((group) => group.some((word) => names(spoken, word))) &&
        (text.includes("?") || accepted.signs.some((sign) => names(spoken, sign)))
    }
    case "OneChoice": {
      const spoken = words(text)
      return accepted.among.filter((choice) => names(spoken, choice)).length === 1 &&
        !accepted.retractions.some((retraction) => names(spoken, retraction))
    }
  }
}

/** Whether an earlier answer contains one of the texts. */
const fits = (
  when: QuestionVariant["when"],
  answers: { readonly [step: string]: string | undefined }
): boolean => {
  if (when === undefined) return true
  const answer = fold(answers[when.step] ?? "")
  return when.contains.some((text) => answer.includes(fold(text)))
}

/** The variant of a question that these earlier answers lead to. */
const variantOf = <Step extends string>(
  question: Question<Step>,
  answers: AnswerTexts<Step>
): QuestionVariant => {
  const fitting = question.variants.find(({ when }) => fits(when, answers))
  // The last variant is the default, even if its `when` does not hold.
  return fitting ?? question.variants.at(-1) ?? question.variants[0]
}

/** Whether an answer to a question is accepted, given the earlier ones. */
const isAccepted = <Step extends string>(
  question: Question<Step>,
  answers: AnswerTexts<Step>,
  text: string
): boolean => variantOf(question, answers).accepts.some((accepted) => matches(text, accepted))

/** The next step: a question, or one of the two ends. */
export type ScriptProgress<Step extends string> =
  | { readonly _tag: "Asks"; readonly step: Step; readonly p: string }
  | { readonly _tag: "Crossed"; readonly p: string }
  | { readonly _tag: "Cast"; readonly step: Step; readonly p: string }

/**
 * Where these answers lead: to the first question without an answer, unless an earlier answer
 * was wrong; to the end when there is none left. The whole of the stateless variant (B8–B11).
 */
export const scriptProgress = <Step extends string>(
  script: Script<Step>,
  answers: AnswerTexts<Step>
): ScriptProgress<Step> => {
  for (const question of script.questions) {
    const text = answers[question.step]
    if (text === undefined) {
      return { _tag: "Asks", step: question.step, p: variantOf(question, answers).ask }
    }
    if (!isAccepted(question, answers, text)) {
      return { _tag: "Cast", step: question.step, p: script.cast }
    }
  }
  return { _tag: "Crossed", p: script.crossed }
}
