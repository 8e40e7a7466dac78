/** A way through the pages by keyboard alone, with a screenshot of each step. */
import type { Browser, BrowserContext } from "playwright-core"
import { expect } from "vitest"
import { allFaultsOf } from "../browser/axe.ts"
import { openTab, type Tab } from "../browser/browser.ts"
import { Keyboard } from "../browser/keyboard.ts"
import { expectStatus, postXml, send } from "../client.ts"
import { eventually } from "../process.ts"

const shownWithinMs = 120_000

/** How the pages are looked at. */
export interface Look {
  readonly width: number
  readonly theme: "light" | "dark"
  readonly isScripted: boolean
}

/** Three widths, light and dark, with a script and without. */
export const flowLooks: ReadonlyArray<Look> = [390, 768, 1_280].flatMap((width) =>
  (["light", "dark"] as const).flatMap((theme) =>
    [true, false].map((isScripted) => ({ width, theme, isScripted }))
  )
)

export const lookName = ({ isScripted, theme, width }: Look): string =>
  `${width}-${theme}-${isScripted ? "script" : "plain"}`

/**
 * The looks in which axe checks each step. Most steps show what no sample page does: the answer to
 * a form, a secret that is shown once, a refused form, a message of a script. axe takes up to a
 * second a step, so these are four of the twelve looks: both themes, narrow and wide. axe waits for
 * timers, which a browser without scripts does not run; it gets the same documents.
 */
const isChecked = ({ isScripted, width }: Look): boolean => isScripted && width !== 768

/** Its pages are the largest ones, and all of their kinds are sample pages. */
const uncheckedFlow = "docs"

/** The account that a look acts as. */
export interface Actor {
  readonly account: string
  readonly token: string
  readonly authorization: string
}

/** The cookies of a browser, with which a new tab may begin. */
export type BrowserState = Awaited<ReturnType<BrowserContext["storageState"]>>

interface Place {
  readonly base: string
  readonly look: Look
  readonly flow: string
  readonly actor: Actor
}

export class Walk {
  readonly tab: Tab
  readonly keys: Keyboard
  readonly base: string
  readonly look: Look
  readonly actor: Actor
  /** What axe has found, with the names of the steps. */
  readonly faults: Array<string> = []
  private readonly flow: string
  private count = 0

  constructor(tab: Tab, { actor, base, flow, look }: Place) {
    this.tab = tab
    this.keys = new Keyboard(tab.page)
    this.base = base
    this.look = look
    this.flow = flow
    this.actor = actor
  }

  /** Opens a tab of its own, which has the look. */
  static async open(browser: Browser, place: Place, state?: BrowserState): Promise<Walk> {
    const { isScripted, theme, width } = place.look
    const tab = await openTab(browser, { script: isScripted, scheme: theme }, {
      viewport: { width, height: width < 500 ? 844 : 900 },
      reducedMotion: "reduce",
      permissions: ["clipboard-read", "clipboard-write"],
      ...state === undefined ? {} : { storageState: state }
    })
    return new Walk(tab, place)
  }

  get isScripted(): boolean {
    return this.look.isScripted
  }

  /** A name that no other look has. */
  named(what: string): string {
    return `${what}-${lookName(this.look)}`
  }

  /** Opens the address that a flow begins with. */
  async begin(path: string): Promise<void> {
    await this.tab.page.goto(this.base + path)
    await this.keys.skip()
  }

  /** Signs in by the form. */
  async signIn(): Promise<void> {
    await this.begin("/sign-in")
    await this.fill("Account", this.actor.account)
    await this.fill("Token", this.actor.token)
    await this.enter("Sign in")
  }

  /** Checks the page and saves its picture; in some looks {@link faults} has what axe finds. */
  async step(name: string, heading?: string): Promise<void> {
    if (heading !== undefined) expect(await this.tab.heading()).toBe(heading)
    this.count += 1
    const at = String(this.count).padStart(2, "0")
    const path = `flows/${lookName(this.look)}/${this.flow}-${at}-${name}`
    // Pages of the documentation are long; `page-measures.long.ts` has pictures of the whole.
    await this.tab.inspect(path, this.flow !== "docs")
    if (isChecked(this.look) && this.flow !== uncheckedFlow) {
      await this.check(`${this.flow}-${at}-${name}`)
    }
  }

  private async check(step: string): Promise<void> {
    const { look: { theme }, tab } = this
    const viewport = tab.page.viewportSize()
    if (viewport === null) throw new Error("the tab has no size of its own")
    const found = await allFaultsOf(tab, { viewport, colorScheme: theme })
    this.faults.push(...found.map((fault) => `${step}: ${fault}`))
  }

  /** Goes to a control and presses Enter, which opens the next page; continues in its content. */
  async enter(name: string | RegExp): Promise<void> {
    await (await this.keys.to(name)).enter()
    await this.keys.skip()
  }

  /** Goes to a control and presses a key that changes the page itself. */
  async press(name: string | RegExp, key = "Enter"): Promise<void> {
    await (await this.keys.to(name)).press(key)
  }

  /** Follows a link of the header or of the navigation in it, which is before the content. */
  async header(name: string): Promise<void> {
    await (await this.keys.back(name)).enter()
    await this.keys.skip()
  }

  async fill(name: string, text: string): Promise<void> {
    await (await this.keys.toField(name)).types(text)
  }

  async choose(name: string, option: string): Promise<void> {
    await (await this.keys.toField(name)).chooses(option)
  }

  /** Waits for a text in the content; without a script the user loads the page again. */
  async appears(text: string): Promise<void> {
    await this.tab.appears(text, this.isScripted)
    await this.keys.skip()
  }

  /** Expects that the content has this text now. */
  async shows(text: string): Promise<void> {
    await this.tab.page.locator("main").getByText(text).first().waitFor()
  }

  /** Waits for a condition: \`expect.poll\` waits for no test that runs beside others. */
  async until(what: string, isMet: () => Promise<boolean>): Promise<void> {
    await eventually(shownWithinMs, what, async () => await isMet() ? true : undefined)
  }

  /** Expects so many entries of the page's list. */
  async lists(count: number): Promise<void> {
    const entries = this.tab.page.locator(".entries > li:visible")
    await this.until(`${count} entries`, async () => await entries.count() === count)
  }

  private get credentials() {
    return { authorization: this.actor.authorization }
  }

  /** Opens a mailbox of the actor by a program, with these texts; returns its address. */
  async mailbox(what: string, ...texts: ReadonlyArray<string>): Promise<string> {
    const name = this.named(what)
    const document = `<mailbox><name>${name}</name></mailbox>`
    expectStatus(await postXml(this.base, "/mailboxes", document, this.credentials), 201)
    for (const body of texts) {
      const headers = { ...this.credentials, "content-type": "text/plain" }
      const path = `/mailboxes/${name}`
      expectStatus(await send(this.base, path, { method: "POST", headers, body }), 202)
    }
    return `${this.base}/mailboxes/${name}`
  }
}
