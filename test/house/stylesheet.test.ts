/**
 * The stylesheet of the pages: lengths of text, distances, corners and shadows are tokens. Its base
 * is that of a package, without tokens.
 */
import { expect, it } from "vitest"
import { stylesheet } from "../../http/formats/html/index.ts"
import { normalizeRules } from "../../http/formats/html/packages/normalize.ts"

const own = stylesheet.slice(normalizeRules.length)

/** The properties that take their lengths from tokens. */
const governed = new RegExp(
  "^(?:font|font-size|border-radius|box-shadow|(?:row-|column-)?gap|" +
    "(?:scroll-)?(?:padding|margin)(?:-[a-z]+)*)$"
)

/** The tokens of each kind: there are few. */
const kinds = { text: 5, space: 8, radius: 4, shadow: 2 }

/** Drawings, which have the units of their own grid. */
const drawings = /^\.(?:chart|line|share|picture|num>\.share)/

interface Declaration {
  readonly selector: string
  readonly property: string
  readonly value: string
}

const declarationsOf = (css: string): ReadonlyArray<Declaration> =>
  [...css.matchAll(/([^{};]+)\{([^{}]*)\}/g)].flatMap(([, selector = "", body = ""]) =>
    body.split(";").flatMap((text) => {
      const [property = "", value] = text.split(/:(.*)/s)
      const trimmed = { selector: selector.trim(), property: property.trim() }
      return value === undefined ? [] : [{ ...trimmed, value: value.trim() }]
    })
  )

/** Lengths that no token names; 0 and what is not a length are none. */
const literalsIn = (css: string): ReadonlyArray<string> =>
  declarationsOf(css)
    .filter(({ property, selector }) => governed.test(property) && !drawings.test(selector))
    .filter(({ property, value }) => property !== "box-shadow" || !value.startsWith("inset "))
    .filter(({ value }) => /(?:^|[^\w-])-?\d*\.?\d+(?:rem|em|px|ch|vw|vh)\b/.test(value))
    .map(({ property, selector, value }) => `${selector} { ${property}: ${value} }`)

it("has no length of text, distance, corner or shadow outside of the tokens", () => {
  expect(stylesheet.startsWith(normalizeRules)).toBe(true)
  expect(declarationsOf(own).length).toBeGreaterThan(300)
  expect(literalsIn(own)).toEqual([])
})

/** Each declaration of a selector that stands alone, as `selector property:value`. */
const singlesOf = (css: string): ReadonlyArray<string> =>
  declarationsOf(css).flatMap(({ property, selector, value }) =>
    selector.split(",").map((one) => `${one.trim()} ${property}:${value}`)
  )

it("repeats nothing of its base", () => {
  const base = new Set(singlesOf(normalizeRules))
  expect(base).toContain("body margin:0")
  expect(singlesOf(own).filter((one) => base.has(one))).toEqual([])
})

it.each([
  "p{font-size:.9rem}",
  "p{font:600 .7rem/1.5 serif}",
  "p{margin:0 auto 1rem}",
  "p{scroll-padding:0 3rem}",
  "p{color:red;gap:2px}",
  "@media print{p{padding-left:calc(1em + var(--space-1))}}",
  "p{border-radius:50px}",
  "p{box-shadow:0 1px 2px #000}"
])("detects a literal: %s", (css) => {
  expect(literalsIn(css)).toHaveLength(1)
})

it("uses every token, and has few", () => {
  const names = [...stylesheet.matchAll(/--(\w+)-(\w+):/g)]
  for (const [kind, most] of Object.entries(kinds)) {
    const steps = names.filter(([, of]) => of === kind).map(([, , step]) => step)
    expect([kind, new Set(steps).size]).toEqual([kind, most])
    for (const step of steps) expect(stylesheet).toContain(`var(--${kind}-${step})`)
  }
})
