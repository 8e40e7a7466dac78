/** The reader of a page: a service where the page says, the commands that it types, a folder. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { adminToken, type Service, temporaryFolder } from "../e2e/process.ts"
import { freePorts } from "../runtime/nats/servers.ts"
import { root } from "./pages.ts"
import { firstStartIn, withSecrets, writtenOrigin } from "./transcript.ts"

/** The callback of the pages. */
const callback = "localhost:9000"

/** A folder with `restante`, `npx` and `systemctl` as a reader has them: the built program. */
export const shims = (): string => {
  const folder = temporaryFolder()
  const shim = (name: string, text: string): void => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(folder, name), 0o755)
  }
  const program = `'${process.execPath}' '${join(root, "dist/bin/restante.js")}'`
  shim("restante", `exec ${program} "$@"`)
  shim("npx", `[ "$1" = restante ] || exit 127\nshift\nexec ${program} "$@"`)
  shim(
    "systemctl",
    `pid=$(cat service.pid)
case "$1" in
stop) kill $pid; while kill -0 $pid 2>/dev/null; do sleep 0.1; done;;
start) ${program} serve >/dev/null 2>&1 & echo $! > service.pid
until curl -sf "$BASE_URL/readyz" >/dev/null; do sleep 0.1; done;;
esac`
  )
  return folder
}

/** A service as a page names it, and a folder of its reader. */
export interface Site {
  readonly service: Service
  readonly token: string
  /** With the secrets that the pages leave out. */
  readonly typed: (command: string) => string
  readonly folder: string
  readonly here: (text: string) => string
  readonly asWritten: (text: string) => string
}

export const siteOf = async (service: Service): Promise<Site> => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, "backup"))
  // On a terminal curl shows no progress of what it prints there.
  writeFileSync(join(folder, ".curlrc"), "no-progress-meter\n")
  writeFileSync(join(folder, "service.pid"), String(service.pid))
  const [port] = await freePorts(1)
  const places: ReadonlyArray<readonly [string, string]> = [
    [writtenOrigin, `http://localhost:${service.port}`],
    [callback, `localhost:${port}`],
    ["/var/lib/restante", service.dataDir],
    ["/backup/", `${folder}/backup/`]
  ]
  const here = (text: string) => places.reduce((now, [a, b]) => now.replaceAll(a, b), text)
  const asWritten = (text: string) => places.reduce((now, [a, b]) => now.replaceAll(b, a), text)
  const first = firstStartIn(service.output) ?? { token: adminToken, lines: [], secret: "" }
  const typed = (command: string) => withSecrets(here(command), first)
  return { service, token: first.token, typed, folder, here, asWritten }
}

/** The environment of a reader's shell. */
export const environmentOf = ({ folder, here, service, token }: Site) => {
  const { PATH = "", HOME = "" } = process.env
  return {
    PATH: `${shims()}:${PATH}`,
    HOME,
    // The reader has no contexts yet.
    XDG_CONFIG_HOME: folder,
    TOKEN: token,
    ADMIN_TOKEN: token,
    RESTANTE_TOKEN: token,
    BASE_URL: here(writtenOrigin),
    DATA_DIR: service.dataDir,
    DISK_FREE_MIN: "0",
    PORT: String(service.port),
    HOST: "127.0.0.1",
    NO_PROXY: "*",
    CURL_HOME: folder
  }
}
