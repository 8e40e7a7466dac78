/** A user with only a keyboard, who reaches controls by Tab. */
import type { Page } from "playwright-core"

/** More Tab stops than any page has. */
const stopsMax = 200

/** The accessible name of the focused element. */
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

  /** Presses Tab until this name has the focus; throws at the end of the page, or if invisible. */
  async to(name: string): Promise<this> {
    for (let stop = 0; stop < stopsMax; stop++) {
      await this.page.keyboard.press("Tab")
      if (await this.focused() !== name) continue
      if (Number(await this.page.evaluate(focusedRing)) < 2) throw new Error(`${name} has no ring`)
      return this
    }
    throw new Error(`no Tab leads to ${name} on ${this.page.url()}`)
  }

  /** Replaces the text of the focused field. */
  async types(text: string): Promise<this> {
    await this.page.keyboard.press("ControlOrMeta+A")
    await this.page.keyboard.insertText(text)
    return this
  }

  /** Follows a link, or submits a form, and waits for the next page. */
  async enter(): Promise<this> {
    const left = this.page.waitForEvent("framenavigated")
    await this.page.keyboard.press("Enter")
    await left
    await this.page.waitForLoadState("load")
    return this
  }
}
