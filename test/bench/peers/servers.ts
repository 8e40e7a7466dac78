/** The other stores: each with a folder of its own, reached on this machine alone. */
import { spawnSync } from "node:child_process"
import { chmodSync, chownSync, realpathSync } from "node:fs"
import { connect } from "node:net"
import { dirname, join } from "node:path"
import { found, run, toolOf } from "../../deploy/tools.ts"
import { install } from "../../foreign/install.ts"
import { cpuMsWithChildren, type Running, startProgram, startScript,
  type User } from "../process.ts"
import { restateVersion, startRestate } from "../restate.ts"
import type { Loadable, Target } from "../rounds.ts"

/** A store that takes deposits over HTTP. */
export interface Peer extends Loadable {
  readonly version: string
  /** What wrk sends; `run`: a text that makes its documents differ from all others. */
  readonly target: (run: string) => Target
  /** How many documents it has stored. */
  readonly count: () => Promise<number>
  readonly stop: () => Promise<void>
}

/** As many as the service has. */
export const mailboxes = 100

const textAt = async (uri: string): Promise<string> => {
  const answer = await fetch(uri)
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${uri} was answered ${answer.status}: ${text}`)
  return text
}

/** A program of Debian. A server that its package starts when it is installed is stopped. */
const installed = (
  program: string,
  debianPackage: string,
  service: string,
  folders: ReadonlyArray<string> = []
): string => {
  const there = found(program, folders)
  if (there !== undefined) return there
  const path = toolOf(program, debianPackage, folders)
  run("service", [service, "stop"])
  return path
}

/** A store behind `http-store.ts`, which has the `args`; ends the store when it does not start. */
const behindHttp = async (
  store: Running,
  version: string,
  args: ReadonlyArray<string>
): Promise<Peer> => {
  try {
    const http = await startScript("peers/http-store.js", args)
    return {
      version,
      origin: http.origin,
      cpuMs: () => http.cpuMs() + cpuMsWithChildren(store.pid),
      target: (text) => ({ script: "deposit", args: [text, "/mailboxes/m", String(mailboxes)] }),
      count: async () => Number(await textAt(`${http.origin}/count`)),
      stop: async () => {
        await http.stop()
        await store.stop()
      }
    }
  } catch (error) {
    await store.stop()
    throw error
  }
}

const pg = { registry: "npm", name: "pg", version: "8.23.1" } as const

const postgresqlMajor = 15

/** PostgreSQL refuses root; it runs as the user of its package then. */
const postgresqlUser = (): User | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const [uid, gid] = ["-u", "-g"].map((option) => run("id", [option, "postgres"]).output.trim())
  if (!/^\d+$/.test(uid ?? "")) throw new Error("there is no user postgres")
  return { uid: Number(uid), gid: Number(gid) }
}

/** Everything that a commit needs to be durable is on; the rest is what makes it fast. */
const postgresqlSettings = {
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  listen_addresses: "",
  shared_buffers: "512MB",
  max_wal_size: "4GB",
  checkpoint_timeout: "30min",
  wal_level: "minimal",
  max_wal_senders: "0",
  jit: "off"
} as const

export const startPostgresql = async (folder: string): Promise<Peer> => {
  // Its other programs are beside it, where it is no link.
  const initdb = realpathSync(installed("initdb", `postgresql-${postgresqlMajor}`, "postgresql", [
    `/usr/lib/postgresql/${postgresqlMajor}/bin`
  ]))
  const programs = dirname(initdb)
  const { pathOf } = await install(pg)
  const user = postgresqlUser()
  if (user !== undefined) {
    // The user must reach its folder, and read nothing above it.
    chmodSync(dirname(folder), 0o711)
    chownSync(folder, user.uid, user.gid)
  }
  const data = join(folder, "data")
  const options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]
  const made = spawnSync(initdb, [...options, "-D", data], { ...user, encoding: "utf8" })
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}${String(made.error)}`)
  const program = join(programs, "postgres")
  const settings = Object.entries(postgresqlSettings).flatMap(([name, value]) => [
    "-c",
    `${name}=${value}`
  ])
  const store = await startProgram(program, ["-D", data, "-k", folder, ...settings], {
    origin: "",
    user,
    ready: () => Promise.resolve(run(join(programs, "pg_isready"), ["-h", folder]).code === 0),
    // It ends at once; by SIGTERM it would wait for its clients.
    stopSignal: "SIGINT"
  })
  const version = /(\d+\.\d+)/.exec(run(program, ["--version"]).output)?.[1] ?? ""
  const modules = dirname(dirname(dirname(pathOf("pg"))))
  return behindHttp(store, version, ["postgresql", folder, modules])
}

const canConnect = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.end()
      resolve(true)
    })
    socket.once("error", () => resolve(false))
  })

export const startRedis = async (folder: string): Promise<Peer> => {
  const program = installed("redis-server", "redis-server", "redis-server")
  const socket = join(folder, "redis.socket")
  const settings = {
    dir: folder,
    port: "0",
    unixsocket: socket,
    appendonly: "yes",
    appendfsync: "always",
    // Neither snapshots nor a shorter file: they would make it slower.
    save: "",
    "auto-aof-rewrite-percentage": "0"
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
  const ready = () => canConnect(socket)
  const store = await startProgram(program, args, { origin: "", ready })
  const version = /v=(\d+\.\d+)/.exec(run(program, ["--version"]).output)?.[1] ?? ""
  return behindHttp(store, version, ["redis", socket])
}

export const startRestateMailboxes = async (folder: string): Promise<Peer> => {
  const restate = await startRestate(folder)
  return {
    ...restate,
    version: restateVersion,
    target: (text) => ({
      script: "deposit",
      args: [text, "/mailbox/m", String(mailboxes), "/deposit"]
    }),
    count: async () => {
      let sum = 0
      for (let at = 0; at < mailboxes; at++) {
        const answer = await fetch(`${restate.origin}/mailbox/m${at}/count`, { method: "POST" })
        const text = await answer.text()
        if (!answer.ok) throw new Error(`Restate answered ${answer.status}: ${text}`)
        sum += Number(text)
      }
      return sum
    }
  }
}
