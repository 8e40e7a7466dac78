/** Checks pages by axe-core, with all that is folded in their content opened. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Tab } from "./browser.ts"

const require = createRequire(import.meta.url)
/** The minified build, since the browser parses it once for each page. */
const source = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8")

const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
/** Rules whose results can depend on colors. */
const colorRules = ["color-contrast", "link-in-text-block"]

/** Rules whose results can depend on layout and sizes. */
const layoutRules = ["target-size", "scrollable-region-focusable", "meta-viewport"]

/** Only the tested parts of faults are computed and returned. */
const quick = { resultTypes: ["violations"], preload: false, selectors: false, iframes: false }

const run = async (tab: Tab, options: object): Promise<ReadonlyArray<string>> => {
  const script = `axe.run(document, ${JSON.stringify({ ...quick, ...options })})
    .then(({ passes, violations }) => passes.length === 0
      ? ["axe has checked nothing"]
      : violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`
  // The script ends with this array, as JSON.
  return await tab.page.evaluate(script) as ReadonlyArray<string>
}

/** A rule that axe leaves to validators: one label or address for two targets. */
const repeatedIds = `(() => {
  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id)
  return [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))]
})()`

const narrow = { width: 360, height: 740 }
const wide = { width: 1280, height: 800 }

/** Only these rules can have other results in other colors or at another width. */
const only = (values: ReadonlyArray<string>) => ({ runOnly: { type: "rule", values } })

/** All rules on the wide, light page; then the rules that a narrow or a dark page can break. */
const variants = [
  { viewport: wide, colorScheme: "light", rules: { runOnly: tags } },
  { viewport: wide, colorScheme: "dark", rules: only(colorRules) },
  { viewport: narrow, colorScheme: "light", rules: only([...colorRules, ...layoutRules]) }
] as const

interface Viewport {
  readonly width: number
  readonly height: number
}

/** A way to look at a page. */
interface Look {
  readonly viewport: Viewport
  readonly colorScheme: "light" | "dark"
}

/** The faults of the open page, seen so, by these rules; axe must be loaded. */
const faultsSeen = async (
  tab: Tab,
  { colorScheme, viewport }: Look,
  rules: object
): Promise<ReadonlyArray<string>> => {
  const { page } = tab
  await page.setViewportSize(viewport)
  await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
  const found = await run(tab, rules)
  const overhang = await page.evaluate(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth"
  )
  return [
    ...found.map((fault) => `${viewport.width} ${colorScheme} ${fault}`),
    ...overhang === 0 ? [] : [`${viewport.width} wider than the screen by ${String(overhang)}`]
  ]
}

/** Opens what is folded in the content: axe passes over what is not displayed. */
const unfold = `for (const one of document.querySelectorAll("main details:not([open])")) {
  one.open = true
  one.dataset.unfolded = ""
}`

const foldAgain = `for (const one of document.querySelectorAll("[data-unfolded]")) {
  one.open = false
  delete one.dataset.unfolded
}`

/** What a check finds while all of the content is unfolded. */
const whileUnfolded = async (
  { page }: Tab,
  find: () => Promise<ReadonlyArray<string>>
): Promise<ReadonlyArray<string>> => {
  await page.evaluate(unfold)
  const faults = await find()
  await page.evaluate(foldAgain)
  return faults
}

const loadAxe = ({ page }: Tab): Promise<unknown> => page.evaluate(`${source};undefined`)

/** The faults of the open page, in each of these variants. */
export const faultsOf = async (tab: Tab): Promise<ReadonlyArray<string>> => {
  await loadAxe(tab)
  return whileUnfolded(tab, async () => {
    const faults: Array<string> = []
    const repeated = await tab.page.evaluate(repeatedIds)
    if (String(repeated) !== "") faults.push(`has more than one ${String(repeated)}`)
    for (const { rules, ...look } of variants) faults.push(...await faultsSeen(tab, look, rules))
    return faults
  })
}

/** The faults of the open page, seen so, by all rules. */
export const allFaultsOf = async (tab: Tab, look: Look): Promise<ReadonlyArray<string>> => {
  await loadAxe(tab)
  return whileUnfolded(tab, () => faultsSeen(tab, look, { runOnly: tags }))
}

/** The widths of a phone, a tablet and a desktop, each in both color schemes. */
export const looks: ReadonlyArray<Look> = [390, 768, 1_280].flatMap((width) =>
  (["light", "dark"] as const).map((colorScheme) => ({
    viewport: { width, height: 900 },
    colorScheme
  }))
)

/**
 * The faults of the open page in each of {@link looks}: by all rules in the light ones, and by the
 * rules of colors in the dark ones, which differ in nothing else. `onLook` gets each of them.
 */
export const everyLookFaultsOf = async (
  tab: Tab,
  onLook: (look: string) => Promise<void> = async () => {}
): Promise<ReadonlyArray<string>> => {
  const before = tab.page.viewportSize() ?? wide
  await loadAxe(tab)
  const found = await whileUnfolded(tab, async () => {
    const faults: Array<string> = []
    for (const look of looks) {
      const { colorScheme, viewport: { width } } = look
      const rules = colorScheme === "light" ? { runOnly: tags } : only(colorRules)
      faults.push(...await faultsSeen(tab, look, rules))
      await onLook(`${width}-${colorScheme}`)
    }
    return faults
  })
  await tab.page.setViewportSize(before)
  return found
}
