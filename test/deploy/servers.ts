/**
 * deploy/manifests/nats.conf and deploy/manifests/haproxy.cfg with the places of one machine in
 * them.
 */
import { cpSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root, textOf } from "./sources.ts"

/** Puts `to` for the one place of `from`: a file that has changed must not pass unnoticed. */
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

/** A folder with nats.conf and what it includes; the path of the former. Ports: on loopback. */
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
  const ports = [["0.0.0.0:4222", client], ["0.0.0.0:6222", routes], ["0.0.0.0:8222", monitor]]
  for (const [listens = "", port] of ports) {
    if (port !== undefined) text = replaced(text, String(listens), `127.0.0.1:${port}`)
  }
  const file = join(folder, "nats.conf")
  writeFileSync(file, changed(text))
  return file
}

/** haproxy.cfg on a port of its own, with the nodes at these. */
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
  // There is no name server of Docker's: the addresses are given.
  text = replaced(text, " resolvers docker init-addr last,libc,none", "")
  for (const [name, at] of Object.entries(nodes)) {
    text = replaced(text, `server ${name} ${name}:8080`, `server ${name} 127.0.0.1:${at}`)
  }
  const file = join(folder, "haproxy.cfg")
  writeFileSync(file, text)
  return file
}
