/** A picture and a file, as a camera and a scanner deposit them. */
import crc32 from "crc-32"
import { deflateSync } from "node:zlib"
import { expectStatus, postXml, send } from "../client.ts"
import { pathOf } from "./sample-page.ts"

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value | 0)
  return bytes
}

/** A chunk of a PNG (PNG §5.3). */
const chunk = (type: string, data: Buffer): Buffer => {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), data])
  return Buffer.concat([uint32(data.length), typed, uint32(crc32.buf(typed))])
}

const width = 320
const height = 180

/** A sky above a lawn, of 320 by 180 pixels. */
const samplePng = (): Buffer => {
  const header = Buffer.concat([uint32(width), uint32(height), Buffer.from([8, 2, 0, 0, 0])])
  const rows = Buffer.alloc(height * (1 + 3 * width))
  for (let y = 0; y < height; y++) {
    const color = y < 120 ? [120 + y / 2, 170 + y / 3, 235] : [70, 150 - (y - 120) / 2, 70]
    for (let x = 0; x < width; x++) rows.set(color, y * (1 + 3 * width) + 1 + 3 * x)
  }
  const data = deflateSync(rows)
  const chunks = [chunk("IHDR", header), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]
  return Buffer.concat([signature, ...chunks])
}

/** The width of the picture. */
export const samplePngWidth = width

/** A file that no page shows. */
export const samplePdf = Buffer.from("%PDF-1.4\n% one page of a bill\n%%EOF\n")

const mailboxDocument = (name: string): string =>
  `<mailbox><name>${name}</name><title>Camera and scanner</title>` +
  "<webhook-priority>5</webhook-priority><webhook-tags>door,camera</webhook-tags>" +
  "<webhook-link>https://camera.example/live</webhook-link></mailbox>"

/**
 * Creates a mailbox with the picture and the file, each with a priority, tags and a link by the
 * templates of the mailbox. Returns the paths of the mailbox and of both notifications.
 */
export const createFilesMailbox = async (
  base: string,
  name: string,
  owner: Readonly<Record<string, string>>
): Promise<{ readonly path: string; readonly picture: string; readonly file: string }> => {
  const path = `/mailboxes/${name}`
  expectStatus(await postXml(base, "/mailboxes", mailboxDocument(name), owner), 201)
  const deposit = async (type: string, body: Uint8Array): Promise<string> => {
    const sent = await send(base, path, { method: "POST", headers: { "content-type": type }, body })
    return pathOf(expectStatus(sent, 202).headers.get("location"))
  }
  const picture = await deposit("image/png", samplePng())
  return { path, picture, file: await deposit("application/pdf", samplePdf) }
}
