/** The result of a promise, or a rejection after this many milliseconds. */
export function within<T>(milliseconds: number, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = new Error(`it did not answer within ${milliseconds / 1000} seconds`);
    const timer = setTimeout(() => reject(late), milliseconds);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
