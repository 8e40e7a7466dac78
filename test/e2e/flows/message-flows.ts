/** Finding notifications by their marks, and opening the pictures and files in them. */
import { expect } from "vitest"
import { readFileSync } from "node:fs"
import { createFilesMailbox, samplePdf, samplePngWidth } from "../browser/sample-files.ts"
import type { Walk } from "./walk.ts"

/** Deposits by the form, of which the fields for marks are folded. */
const depositWithMarks = async (walk: Walk): Promise<void> => {
  await walk.fill("What it is about", "the water meter")
  await walk.fill("The message itself", "It leaks.")
  await walk.press("More: priority, tags, link")
  await walk.choose("Priority", "urgent")
  await walk.fill("Tags", "water, cellar")
  await walk.fill("Link", "https://waterworks.example/report")
  await walk.step("marks")
  await walk.enter("Deposit")
  expect(await walk.tab.heading()).toBe("Deposited")
  await walk.enter("Back to the mailbox")
}

/** The listings by a tag and by a priority, each with the way back, and by both. */
export const filterFlow = async (walk: Walk): Promise<void> => {
  const mailbox = await walk.mailbox("marked", "of no tag", "of no priority")
  await walk.begin(new URL(mailbox).pathname)
  await walk.lists(2)
  await depositWithMarks(walk)
  await walk.lists(3)
  await walk.step("list")
  await walk.enter("cellar")
  await walk.lists(1)
  await walk.shows("the water meter")
  await walk.step("by-tag")
  await walk.enter("Without tag cellar")
  await walk.lists(3)
  await walk.enter("‼ urgent")
  await walk.lists(1)
  await walk.shows("the water meter")
  await walk.step("by-priority")
  await walk.enter("water")
  await walk.lists(1)
  await walk.step("by-both")
  await walk.enter("Without priority 5")
  await walk.enter("Without tag water")
  await walk.lists(3)
}

const isDrawn = (selector: string): string =>
  `document.querySelector(${JSON.stringify(selector)})?.naturalWidth === ${samplePngWidth}`

/** A picture is on the page of its notification, and by itself; a file is downloaded. */
export const filesFlow = async (walk: Walk): Promise<void> => {
  const { actor: { authorization }, base, tab: { page } } = walk
  const { path } = await createFilesMailbox(base, walk.named("scanned"), { authorization })
  await walk.begin(path)
  await walk.lists(2)
  await walk.step("list")
  await walk.enter("A picture")
  await walk.until("the picture", async () => Boolean(await page.evaluate(isDrawn("img.message"))))
  await walk.step("picture", "A picture")
  // The styles by which Chromium centers a picture: content has a policy that allows none.
  walk.tab.tolerates(
    "Applying inline style violates the following Content Security Policy " +
      "directive 'default-src 'none''"
  )
  await (await walk.keys.to("The message by itself")).enter()
  expect(await page.evaluate(isDrawn("img"))).toBe(true)
  await walk.begin(path)
  await walk.enter("A PDF document")
  await walk.shows(`application/pdf, ${samplePdf.length} B`)
  await walk.step("file", "A PDF document")
  const downloading = page.waitForEvent("download")
  await (await walk.keys.to("Download")).press("Enter")
  const download = await downloading
  expect(readFileSync(await download.path())).toEqual(samplePdf)
}
