/** Programs of Debian that these tests use: on the path, or installed as root. */
import { execFile, spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"

const outputBytesMax = 64 * 1024 * 1024

/** Beside the path: where Debian keeps what is the administrator's. */
const folders = () => [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"]

/** Where a program is that is installed. */
export const found = (name: string): string | undefined =>
  folders().map((folder) => join(folder, name)).find(existsSync)

const apt = (...args: ReadonlyArray<string>) =>
  spawnSync("apt-get", ["-qq", "-o", "DPkg::Lock::Timeout=300", ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    encoding: "utf8"
  })

/** Where a program is. Throws, saying what to install, where it is not to be had. */
export const toolOf = (name: string, debianPackage = name): string => {
  const there = found(name)
  if (there !== undefined) return there
  apt("update")
  // Its code also tells of packages that others left half installed: what counts is the program.
  const { stderr } = apt("install", "-y", "--no-install-recommends", debianPackage)
  const installed = found(name)
  if (installed === undefined) {
    throw new Error(`no ${name}: install it, as Debian's ${debianPackage}\n${stderr ?? ""}`)
  }
  return installed
}

/** Runs a program to its end. */
export const run = (
  program: string,
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {}
): { readonly code: number | null; readonly output: string } => {
  const { error, status, stderr, stdout } = spawnSync(program, args, {
    env: { PATH: process.env["PATH"] ?? "", ...environment },
    encoding: "utf8",
    maxBuffer: outputBytesMax
  })
  return { code: status, output: `${stdout ?? ""}${stderr ?? ""}${error?.message ?? ""}` }
}

/** Runs a program that takes its time. Fails, with what it wrote, unless it succeeds. */
export const must = (
  program: string,
  args: ReadonlyArray<string>,
  environment: NodeJS.ProcessEnv = process.env
): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { env: environment, maxBuffer: outputBytesMax }
    execFile(program, [...args], options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${error.message.slice(0, 1000)}\n${stdout}${stderr}`))
    })
  })

/**
 * How `unshare` is told to keep mounts to itself. Where the root is no mount point, as in a changed
 * root, that cannot be said; mounts there are nobody else's as it is.
 */
export const ownMounts = (): ReadonlyArray<string> => {
  const isRootMounted = run("unshare", ["--mount", "--propagation", "private", "true"]).code === 0
  return ["--mount", "--propagation", isRootMounted ? "private" : "unchanged"]
}
