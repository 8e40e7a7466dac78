/** A person at a keyboard: nothing is pointed at, and nothing found that no Tab leads to. */
import type { Page } from "playwright-core"

/** No page has more places to stop at. */
const stopsMax = 200

/** What is focused, as a screen reader would name it. */
const focusedName = `(() => {
  const node = document.activeElement
  if (node === null || node === document.body) return ""
  return node.getAttribute("aria-label") ?? node.labels?.[0]?.textContent ?? node.textContent ?? ""
})()`

const focusedRing = `(() => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement)
  return outlineStyle === "none" ? 0 : Number.parseFloat(outlineWidth)
})()`

export class Keyboard {
  private readonly page: Page

  constructor(page: Page) {
    this.page = page
  }

  private async focused(): Promise<string> {
    return String(await this.page.evaluate(focusedName)).trim()
  }

  /** Goes on by Tab to what has this name; throws when the page ends before, or none is seen. */
  async to(name: string): Promise<this> {
    for (let stop = 0; stop < stopsMax; stop++) {
      await this.page.keyboard.press("Tab")
      if (await this.focused() !== name) continue
      if (Number(await this.page.evaluate(focusedRing)) < 2) throw new Error(`${name} has no ring`)
      return this
    }
    throw new Error(`no Tab leads to ${name} on ${this.page.url()}`)
  }

  /** Writes over what is in the focused field. */
  async types(text: string): Promise<this> {
    await this.page.keyboard.press("ControlOrMeta+A")
    await this.page.keyboard.insertText(text)
    return this
  }

  /** Follows a link, or sends a form, and waits for the page that it leads to. */
  async enter(): Promise<this> {
    const left = this.page.waitForEvent("framenavigated")
    await this.page.keyboard.press("Enter")
    await left
    await this.page.waitForLoadState("load")
    return this
  }
}
