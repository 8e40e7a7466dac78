/** The part of a uWebSockets.js response that this module uses; tests implement it too. */
export interface NativeResponse {
  pause(): void
  resume(): void
  writeStatus(status: string | Uint8Array): unknown
  writeHeader(name: string, value: string): unknown
  write(chunk: string | Uint8Array): boolean
  end(body?: string | Uint8Array, closeConnection?: boolean): unknown
  endWithoutBody(): unknown
  tryEnd(chunk: string | Uint8Array, totalBytes: number): [ok: boolean, done: boolean]
  close(): unknown
  getWriteOffset(): number
  onWritable(handler: (offset: number) => boolean): unknown
  onAborted(handler: () => void): unknown
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): unknown
  cork(write: () => void): unknown
  getRemoteAddressAsText(): ArrayBuffer
}
