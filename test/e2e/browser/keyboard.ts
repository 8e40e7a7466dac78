/** A user with only a keyboard, who reaches controls by Tab. */
import type { Page } from "playwright-core"

/** More Tab stops than any page has. */
const stopsMax = 400

/** For hangs only: a browser scrolls smoothly to what gets the focus. */
const scrolledWithinMs = 20_000

/** Names of stops in the message of an error. */
const passedShownMax = 60

/** What a user perceives of the focused element. */
interface Focused {
  /** The accessible name; empty if nothing has the focus. */
  readonly name: string
  readonly isNone: boolean
  readonly isField: boolean
  readonly ringPx: number
  /** Whether a part of it is on the screen, and nothing covers its middle. */
  readonly isSeen: boolean
  /** What covers it, if anything does. */
  readonly covering?: string
}

const readFocused = `(() => {
  const node = document.activeElement
  if (node === null || node === document.body) return { name: "", isNone: true, isField: false }
  const text = node.getAttribute("aria-label") ?? node.labels?.[0]?.textContent ?? node.textContent
  const { outlineStyle, outlineWidth } = getComputedStyle(node)
  // The first line of a link that wraps: the middle of all its lines may be beside it.
  const { bottom, left, right, top } = node.getClientRects()[0] ?? node.getBoundingClientRect()
  const middle = (from, to, most) => (Math.max(0, from) + Math.min(most, to)) / 2
  const isOnScreen = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth
  const hit = isOnScreen
    ? document.elementFromPoint(middle(left, right, innerWidth), middle(top, bottom, innerHeight))
    : null
  return {
    name: (text ?? "").trim().replaceAll(/\\s+/g, " "),
    isNone: false,
    isField: node.matches("input, select, textarea"),
    ringPx: outlineStyle === "none" ? 0 : Number.parseFloat(outlineWidth),
    isSeen: isOnScreen && (hit === null || node.contains(hit) || hit.contains(node)),
    covering: hit?.outerHTML.slice(0, 100)
  }
})()`

const skipName = "Skip to the content"

export class Keyboard {
  private readonly page: Page

  constructor(page: Page) {
    this.page = page
  }

  private async focused(): Promise<Focused> {
    return await this.page.evaluate(readFocused) as Focused // of the script above
  }

  /** What has the focus, when the page has scrolled to it: that takes the browser some frames. */
  private async settled(): Promise<Focused> {
    const until = Date.now() + scrolledWithinMs
    for (;;) {
      const focused = await this.focused()
      if (focused.isNone || focused.isSeen || Date.now() > until) return focused
    }
  }

  /** The accessible name of the focused control; empty without one. */
  async focusedName(): Promise<string> {
    return (await this.focused()).name
  }

  /** Throws if a user cannot perceive which control has the focus. */
  private check({ covering = "", isNone, isSeen, name, ringPx }: Focused): void {
    if (isNone) return
    const hidden = isSeen ? "" : `is out of sight ${covering}`
    const fault = name === "" ? "no name" : ringPx < 2 ? "no ring" : hidden
    if (fault !== "") throw new Error(`"${name}" on ${this.page.url()}: ${fault}`)
  }

  /** Goes on, as if the user held the key, until the control is found. */
  private async go(
    isForward: boolean,
    name: string | RegExp,
    isWanted: (focused: Focused) => boolean
  ): Promise<this> {
    const { keyboard } = this.page
    const passed: Array<string> = []
    if (!isForward) await keyboard.down("Shift")
    try {
      for (let stop = 0; stop < stopsMax; stop++) {
        await keyboard.down("Tab")
        const focused = await this.settled()
        this.check(focused)
        const isNamed = typeof name === "string" ? focused.name === name : name.test(focused.name)
        if (isNamed && isWanted(focused)) return this
        if (passed.length < passedShownMax) passed.push(focused.name.slice(0, 40))
      }
    } finally {
      await keyboard.up("Tab")
      if (!isForward) await keyboard.up("Shift")
    }
    throw new Error(`no Tab leads to ${name} on ${this.page.url()}: ${passed.join(" | ")}`)
  }

  /** Presses Tab until this name has the focus; each stop must have a name and a visible ring. */
  to(name: string | RegExp): Promise<this> {
    return this.go(true, name, () => true)
  }

  /** {@link to} a field: something else may have the same name, such as a button. */
  toField(name: string): Promise<this> {
    return this.go(true, name, ({ isField }) => isField)
  }

  /** {@link to} in the other direction. */
  back(name: string | RegExp): Promise<this> {
    return this.go(false, name, () => true)
  }

  /** Follows the link to the content, unless the focus is in it already, or will be. */
  async skip(): Promise<this> {
    const focused = await this.page.evaluate(`document.activeElement.closest("main") !== null
      ? "content"
      : document.activeElement === document.body && document.querySelector("[autofocus]") !== null
      ? "awaited"
      : "elsewhere"`)
    // A browser moves the focus when it first draws the page, which may be after its load.
    if (focused === "awaited") await this.page.locator("[autofocus]:focus").waitFor()
    if (focused !== "elsewhere") return this
    await (await this.to(skipName)).press("Enter")
    await this.page.locator("#main:focus").waitFor()
    return this
  }

  async press(...keys: ReadonlyArray<string>): Promise<this> {
    for (const key of keys) await this.page.keyboard.press(key)
    return this
  }

  /** Replaces the text of the focused field. */
  async types(text: string): Promise<this> {
    await this.page.keyboard.press("ControlOrMeta+A")
    await this.page.keyboard.insertText(text)
    return this
  }

  /** Chooses an option of the focused list by the arrows. */
  async chooses(option: string): Promise<this> {
    await this.page.keyboard.press("Home")
    const chosen = "document.activeElement.selectedOptions[0].text"
    for (let tries = 0; tries < stopsMax; tries++) {
      if (await this.page.evaluate(chosen) === option) return this
      await this.page.keyboard.press("ArrowDown")
    }
    throw new Error(`no option ${option} on ${this.page.url()}`)
  }

  /** Follows a link, or submits a form, and waits for the next page. */
  async enter(): Promise<this> {
    const loaded = this.page.waitForEvent("load")
    await this.page.keyboard.press("Enter")
    await loaded
    return this
  }
}
