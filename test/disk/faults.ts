/** Controls the faults of a process's disk and clock by the library `faults.c`. */
import { execFileSync } from "node:child_process"
import { closeSync, existsSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs"
import { constants, tmpdir } from "node:os"
import { delimiter, join } from "node:path"

const FIELD_BYTES = 4
/** The fields of the control file, in the order of faults.c. */
const fields = ["flush", "write", "read", "error", "clockS", "stalled", "failed"] as const
type Field = typeof fields[number]
const modes = { asEver: 0, stalls: 1, fails: 2 } as const

/** A fault of calls on the disk. */
export type DiskFault = keyof typeof modes

const compilers = ["cc", "gcc", "clang", "tcc"]

const compiler = (): string => {
  const folders = (process.env["PATH"] ?? "").split(delimiter)
  const found = compilers.find((name) => folders.some((one) => existsSync(join(one, name))))
  if (found === undefined) throw new Error(`no C compiler on the path: ${compilers.join(", ")}`)
  return found
}

/** Compiles the library into a folder; returns its path. */
const compile = (folder: string): string => {
  const library = join(folder, "faults.so")
  const source = join(import.meta.dirname, "faults.c")
  const args = ["-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"]
  execFileSync(compiler(), args, { stdio: "inherit" })
  return library
}

/** Faults of the files below one folder, for processes with this `env`. */
export class FaultyDisk {
  readonly env: Readonly<Record<string, string>>
  /** The record of the calls, in order. */
  readonly record: string
  private readonly folder: string
  private readonly file: number

  constructor(under: string, { records = false } = {}) {
    this.folder = mkdtempSync(join(tmpdir(), "restante-faults-"))
    const control = join(this.folder, "control")
    this.file = openSync(control, "w+")
    writeSync(this.file, Buffer.alloc(fields.length * FIELD_BYTES))
    this.record = join(this.folder, "record")
    this.env = {
      LD_PRELOAD: compile(this.folder),
      FAULTS_UNDER: under,
      FAULTS_CONTROL: control,
      ...(records ? { FAULTS_RECORD: this.record } : {})
    }
  }

  /** From now on flushes, writes or reads stall until further notice, or fail. */
  disk(kind: "flush" | "write" | "read", mode: DiskFault, error: "EIO" | "ENOSPC" = "EIO"): void {
    this.set("error", constants.errno[error])
    this.set(kind, modes[mode])
  }

  /** The offset of the process's clock, in seconds. */
  clock(offS: number): void {
    this.set("clockS", offS)
  }

  /** Calls that stall at present. */
  get stalled(): number {
    return this.get("stalled")
  }

  /** Calls that have failed. */
  get failed(): number {
    return this.get("failed")
  }

  close(): void {
    closeSync(this.file)
    rmSync(this.folder, { recursive: true, force: true })
  }

  private set(field: Field, value: number): void {
    const bytes = Buffer.alloc(FIELD_BYTES)
    bytes.writeInt32LE(value)
    writeSync(this.file, bytes, 0, FIELD_BYTES, fields.indexOf(field) * FIELD_BYTES)
  }

  private get(field: Field): number {
    const bytes = Buffer.alloc(FIELD_BYTES)
    readSync(this.file, bytes, 0, FIELD_BYTES, fields.indexOf(field) * FIELD_BYTES)
    return bytes.readInt32LE()
  }
}
