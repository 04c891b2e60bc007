/** Saves files from the page. */

/** Saves into the browser's folder for downloads. */
export async function saveBlob(blob: Blob, name: string): Promise<void> {
  const address = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  // A browser reads it after the click, and does not report when it is done.
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}

interface FilePicker {
  showSaveFilePicker?(options: { suggestedName: string }): Promise<FileSystemFileHandle>
}

/** Asks for the place of a large file, which browsers allow only in a click. Null when the dialog is cancelled. */
export async function chooseFile(
  name: string,
): Promise<((bytes: ReadableStream<Uint8Array>, signal: AbortSignal) => Promise<void>) | null> {
  const { showSaveFilePicker } = window as FilePicker
  try {
    if (showSaveFilePicker) {
      const file = await showSaveFilePicker.call(window, { suggestedName: name })
      const target = await file.createWritable()
      return (bytes, signal) => bytes.pipeTo(target, { signal })
    }
  } catch (error) {
    // A frame of another site may not ask.
    if ((error as Error).name === 'AbortError') return null
  }
  return async (bytes, signal) => {
    const blob = await new Response(bytes).blob()
    signal.throwIfAborted()
    await saveBlob(blob, name)
  }
}
