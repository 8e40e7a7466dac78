/** deploy/manifests/nats.conf and haproxy.cfg with the paths and ports of one machine. */
import { cpSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root, textOf } from "./sources.ts"

/** Replaces the one occurrence of `from` by `to`; throws when the file has changed. */
export const replaced = (text: string, from: string | RegExp, to: string): string => {
  const parts = text.split(from)
  if (parts.length !== 2) throw new Error(`${from} is there ${parts.length - 1} times`)
  return parts.join(to)
}

interface Places {
  readonly client?: number
  readonly routes?: number
  readonly monitor?: number
}

/** Writes nats.conf and its includes to a folder; returns its path. Ports are on loopback. */
export const natsConfiguration = (
  folder: string,
  { client, monitor, routes }: Places = {},
  changed: (text: string) => string = (text) => text
): string => {
  mkdirSync(folder, { recursive: true })
  cpSync(join(root, "deploy/manifests/nats"), join(folder, "nats"), { recursive: true })
  let text = replaced(
    textOf("deploy/manifests/nats.conf"),
    "store_dir: \"/data\"",
    `store_dir: "${folder}"`
  )
  const ports = [["0.0.0.0:4222", client], ["0.0.0.0:6222", routes], ["127.0.0.1:8222", monitor]]
  for (const [listens = "", port] of ports) {
    if (port !== undefined) text = replaced(text, String(listens), `127.0.0.1:${port}`)
  }
  const file = join(folder, "nats.conf")
  writeFileSync(file, changed(text))
  return file
}

/** haproxy.cfg on its own port, with the nodes at these addresses. */
export const balancerConfiguration = (
  folder: string,
  port: number,
  nodes: Readonly<Record<string, number>>
): string => {
  let text = replaced(
    textOf("deploy/manifests/haproxy.cfg"),
    "bind :8080",
    `bind 127.0.0.1:${port}`
  )
  // Docker's name server is missing here, so the addresses are literal.
  text = replaced(text, " resolvers docker init-addr last,libc,none", "")
  for (const [name, at] of Object.entries(nodes)) {
    text = replaced(text, `server ${name} ${name}:8080`, `server ${name} 127.0.0.1:${at}`)
  }
  const file = join(folder, "haproxy.cfg")
  writeFileSync(file, text)
  return file
}
