/** The tour of the home page, by keyboard only. */
import { expect } from "vitest"
import type { Tab } from "./browser.ts"
import { Keyboard } from "./keyboard.ts"

const entries = ".entries > li"

/** Goes to the home page, and continues with the mailbox, like a returning user. */
const home = async (tab: Tab, keys: Keyboard, mailbox: string): Promise<void> => {
  await (await keys.to("restante")).enter()
  await keys.to("Or the name of an existing mailbox")
  await (await keys.types(mailbox)).enter()
  expect(new URL(tab.page.url()).search).toBe(`?mailbox=${mailbox}`)
}

/** Types the address of a step into the browser; Tab continues from there. */
const goTo = async (tab: Tab, mailbox: string, step: string): Promise<void> => {
  await tab.page.goto(`${new URL(tab.page.url()).origin}/?mailbox=${mailbox}#${step}`)
}

const openAndFill = async (tab: Tab, keys: Keyboard, mailbox: string): Promise<void> => {
  await keys.to("Name")
  await (await keys.types(mailbox)).enter()
  expect(await tab.heading()).toBe(mailbox)
  await (await keys.to("continue the tour")).enter()
  await (await keys.to("What it is about")).types("the kettle")
  await (await keys.to("The message itself")).types("It is on.")
  await (await keys.to("Deposit")).enter()
  expect(await tab.heading()).toBe("Deposited")
  await (await keys.to("continue the tour")).enter()
  await (await keys.to(`Read ${mailbox}`)).enter()
  expect(await tab.page.locator(entries).count()).toBe(1)
  await (await keys.to("the kettle")).enter()
  expect(await tab.heading()).toBe("the kettle")
  expect(await tab.page.locator(".message").innerText()).toBe("It is on.")
  await (await keys.to("The mailbox")).enter()
  expect(await tab.page.locator(entries).count()).toBe(1)
}

const sendAndGather = async (
  tab: Tab,
  keys: Keyboard,
  mailbox: string,
  isLive: boolean
): Promise<void> => {
  await home(tab, keys, mailbox)
  await (await keys.to("Read " + mailbox)).to("What it is about")
  await keys.types("the post")
  await (await keys.to("The message itself")).types("It is sent.")
  await (await keys.to("Send")).enter()
  expect(await tab.heading()).toBe("the post")
  const sent = tab.page.getByText("✓ sent")
  if (isLive) await sent.waitFor()
  else while (await sent.count() === 0) await tab.page.reload()
  await goTo(tab, mailbox, "gather")
  await (await keys.to("Title")).types(`All of ${mailbox}`)
  await (await keys.to("Create")).enter()
  expect(await tab.heading()).toBe(`All of ${mailbox}`)
  await (await keys.to("The notifications in it")).enter()
  expect(await tab.page.locator(entries).count()).toBe(2)
}

const register = async (
  tab: Tab,
  keys: Keyboard,
  mailbox: string,
  callback: string
): Promise<void> => {
  await goTo(tab, mailbox, "push")
  await keys.to("Callback")
  await (await keys.types(callback)).enter()
  expect(await tab.page.locator("main code").innerText()).toContain("whsec_")
  await (await keys.to("Status of the registration")).enter()
  await tab.page.locator(`a[href="${callback}"]`).waitFor()
}

const cross = async (tab: Tab, keys: Keyboard, mailbox: string): Promise<void> => {
  await goTo(tab, mailbox, "cross")
  await (await keys.to("Step onto the bridge")).enter()
  const answers: ReadonlyArray<readonly [string, string]> = [
    ["What is your name?", "Sir Robin of Camelot"],
    ["What is your quest?", "To seek the Holy Grail"],
    ["What is the capital of Assyria?", "Assur"]
  ]
  for (const [question, answer] of answers) {
    await keys.to(question)
    await (await keys.types(answer)).enter()
  }
  await tab.page.getByText("Right. Off you go.").waitFor()
}

const configure = async (tab: Tab, keys: Keyboard, mailbox: string): Promise<void> => {
  await goTo(tab, mailbox, "ask")
  await keys.to("Least age")
  await (await keys.types("40")).enter()
  expect(await tab.page.getByRole("row").allInnerTexts()).toEqual([
    expect.stringMatching(/Id\s+Name\s+Age/),
    expect.stringMatching(/c3\s+Dame Shirley\s+45/),
    expect.stringMatching(/c4\s+Emmy Noether\s+54/)
  ])
  await goTo(tab, mailbox, "ask")
  await keys.to("Symbol")
  await (await keys.types("ACME")).enter()
  expect(await tab.heading()).toContain("ACME")
}

interface TourOptions {
  readonly callback: string
  readonly isLive: boolean
  /** Called at the end of each step. */
  readonly onStep?: (name: string) => Promise<void>
}

/** All steps; a page without live updates is loaded again. */
export const takeTour = async (
  tab: Tab,
  base: string,
  mailbox: string,
  { callback, isLive, onStep = async () => {} }: TourOptions
): Promise<void> => {
  await tab.page.goto(base)
  await onStep("home")
  const keys = await new Keyboard(tab.page).skip()
  await openAndFill(tab, keys, mailbox)
  await onStep("filled")
  await sendAndGather(tab, keys, mailbox, isLive)
  await onStep("gathered")
  await register(tab, keys, mailbox, callback)
  await onStep("registered")
  await cross(tab, keys, mailbox)
  await onStep("crossed")
  await configure(tab, keys, mailbox)
  await onStep("asked")
}
